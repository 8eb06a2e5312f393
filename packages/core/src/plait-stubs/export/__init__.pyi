# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.export import tensorflow as tensorflow
from plait_export import ArtifactError as ArtifactError
from plait_export import CompiledArtifact as CompiledArtifact
from plait_export import DisabledSafetyCheck as DisabledSafetyCheck
from plait_export import Exported as Exported
from plait_export import Facts as Facts
from plait_export import Limits as Limits
from plait_export import NotExportable as NotExportable
from plait_export import NotReadable as NotReadable
from plait_export import NotWritable as NotWritable
from plait_export import SymbolicScope as SymbolicScope
from plait_export import call_exported as call_exported
from plait_export import check as check
from plait_export import default_export_platform as default_export_platform
from plait_export import deserialize as deserialize
from plait_export import export as export
from plait_export import import_jax as import_jax
from plait_export import is_symbolic_dim as is_symbolic_dim
from plait_export import load as load
from plait_export import load_compiled as load_compiled
from plait_export import register_namedtuple_serialization as register_namedtuple_serialization
from plait_export import register_pytree_node_serialization as register_pytree_node_serialization
from plait_export import register_pytree_serialization as register_pytree_serialization
from plait_export import symbolic_args_specs as symbolic_args_specs
from plait_export import symbolic_shape as symbolic_shape
