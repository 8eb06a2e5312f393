"""Export for Plait: save functions as portable artifacts, for any sizes, and call them elsewhere.

    exported = plait.export.export(f)(*args)       # stages f, and makes it portable StableHLO
    saved = exported.serialize()                # bytes
    plait.export.deserialize(saved).call(*args)    # in another process, with another release

Users import this package as `plait.export`.

Invariant: every public name is exported here.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.sizes import Scope
from plait.ext.surface import advise as _advise
from plait.ext.surface import explained_calls as _explained_calls

from . import tensorflow
from .artifact import Exported
from .bundles import load_compiled
from .calling import call_exported
from .checks import DisabledSafetyCheck
from .errors import ArtifactError, NotExportable, NotReadable, NotWritable
from .facts import Facts, check
from .isolation import Limits
from .jax_artifacts import import_jax
from .loading import deserialize, load
from .machine_code import CompiledArtifact
from .structure import register_namedtuple_serialization, register_pytree_serialization
from .symbols import is_symbolic_dim, symbolic_args_specs, symbolic_shape
from .writing import default_export_platform, export

SymbolicScope = Scope
register_pytree_node_serialization = register_pytree_serialization

__all__ = [
    "ArtifactError", "CompiledArtifact", "DisabledSafetyCheck", "Exported", "Facts", "Limits",
    "NotExportable", "NotReadable", "NotWritable", "SymbolicScope", "call_exported", "check",
    "default_export_platform", "deserialize", "export", "import_jax", "is_symbolic_dim", "load",
    "load_compiled", "register_namedtuple_serialization", "register_pytree_node_serialization",
    "register_pytree_serialization", "symbolic_args_specs", "symbolic_shape", "tensorflow",
]  # fmt: skip

_hide(_os.path.dirname(__file__))

_explained_calls(globals())

_advise("plait.export", globals())
