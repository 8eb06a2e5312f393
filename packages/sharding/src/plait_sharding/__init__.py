"""Sharding for Plait: meshes, shardings, device_put, shard_map and pmap.

Users find these names in `plait` (`plait.shard_map`, `plait.device_put`) and in `plait.sharding`,
which is this package.

Invariant: every public name is listed here.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.surface import advise as _advise
from plait.ext.surface import explained_calls as _explained_calls

from . import topologies
from .assembly import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from .contexts import MeshChange, MissingMesh
from .device_meshes import create_device_mesh, create_hybrid_device_mesh
from .explicit_types import ShardingTypeError
from .inspection import inspect_array_sharding
from .logical_axes import SerialLoop
from .manual import shard_map
from .mesh import AbstractMesh, AxisType, Mesh, P, PartitionSpec
from .movement import (
    Shard,
    device_put,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    sharding_of,
    shards_of,
    use_abstract_mesh,
    use_mesh,
    with_sharding_constraint,
)
from .named_maps import xmap
from .named_shardings import NamedSharding
from .parallel import pmap
from .pictures import picture, visualize_array_sharding, visualize_sharding
from .placement import Sharding, SingleDeviceSharding
from .propagation import AUTO
from .tilings import GSPMDSharding
from .typed_axes import auto_axes, explicit_axes, reshard

__all__ = [
    "AUTO", "AbstractMesh", "AxisType", "GSPMDSharding", "Mesh", "MeshChange", "MissingMesh",
    "NamedSharding", "P", "PartitionSpec", "SerialLoop", "Shard", "Sharding", "ShardingTypeError",
    "SingleDeviceSharding", "auto_axes", "create_device_mesh", "create_hybrid_device_mesh",
    "device_put", "explicit_axes", "inspect_array_sharding", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays",
    "get_abstract_mesh", "get_mesh", "make_mesh", "picture", "pmap", "reshard", "set_mesh",
    "shard_map", "sharding_of", "shards_of", "topologies", "use_abstract_mesh", "use_mesh",
    "visualize_array_sharding", "visualize_sharding", "with_sharding_constraint", "xmap",
]  # fmt: skip

_hide(_os.path.dirname(__file__))

_explained_calls(globals())

_advise("plait.sharding", globals())
