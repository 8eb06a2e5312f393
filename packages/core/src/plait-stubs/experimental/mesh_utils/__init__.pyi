# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sharding import create_device_mesh as create_device_mesh
from plait_sharding import create_hybrid_device_mesh as create_hybrid_device_mesh
