# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sharding.distributed.exchange import assert_equal as assert_equal
from plait_sharding.distributed.exchange import broadcast_one_to_all as broadcast_one_to_all
from plait_sharding.distributed.exchange import global_array_to_host_local_array as global_array_to_host_local_array
from plait_sharding.distributed.exchange import host_local_array_to_global_array as host_local_array_to_global_array
from plait_sharding.distributed.exchange import process_allgather as process_allgather
from plait_sharding.distributed.exchange import sync_global_devices as sync_global_devices
