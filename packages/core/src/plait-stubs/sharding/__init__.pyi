# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.sharding import topologies as topologies
from plait_sharding import *
