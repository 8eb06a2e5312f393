# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sharding import Mesh as Mesh
from plait_sharding import Mesh as _mesh
mesh = _mesh
from plait_sharding import SerialLoop as SerialLoop
from plait_sharding import xmap as xmap
