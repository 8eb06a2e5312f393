# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sharding.distributed import DistributedError as DistributedError
from plait_sharding.distributed import PeerLost as PeerLost
from plait_sharding.distributed import ProgramsDiffer as ProgramsDiffer
from plait_sharding.distributed import initialize as initialize
from plait_sharding.distributed import is_initialized as is_initialized
from plait_sharding.distributed import key_value_delete as key_value_delete
from plait_sharding.distributed import key_value_get as key_value_get
from plait_sharding.distributed import key_value_set as key_value_set
from plait_sharding.distributed import on_ray as on_ray
from plait_sharding.distributed import shutdown as shutdown
from plait_sharding.distributed import wait_at_barrier as wait_at_barrier
