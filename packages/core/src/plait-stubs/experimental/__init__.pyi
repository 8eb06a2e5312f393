# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait import enable_x64 as enable_x64
from plait import io_callback as io_callback
from plait.experimental import jet as jet
from plait.experimental import maps as maps
from plait.experimental import mesh_utils as mesh_utils
from plait.experimental import multihost_utils as multihost_utils
from plait.experimental import pjit as pjit
from plait.experimental import shard_map as shard_map
from plait.experimental import topologies as topologies
