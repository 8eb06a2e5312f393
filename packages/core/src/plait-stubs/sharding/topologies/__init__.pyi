# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sharding.topologies import TopologyDescription as TopologyDescription
from plait_sharding.topologies import get_attached_topology as get_attached_topology
from plait_sharding.topologies import get_topology_desc as get_topology_desc
from plait_sharding.topologies import make_mesh as make_mesh
