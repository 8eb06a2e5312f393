"""`jax.experimental.serialize_executable`: executables as bytes, by `plait.export`.

The bytes hold the machine code and the portable program, which is compiled where the machine
differs.

Invariant: a loaded executable takes and returns the trees of the one that was saved.
"""

import os
import tempfile
from typing import Any

import plait
from plait import tree_util
from plait.stages import Compiled

from .requests import missing

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Return (bytes, structure of the arguments, structure of the results) of an executable."""
    types = tree_util.tree_map(
        lambda a: plait.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type),
        compiled.in_avals,
    )
    args, kwargs = types
    exported = plait.export.export(plait.jit(compiled.as_function()))(*args, **kwargs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "executable")
        exported.compile().save(path)
        with open(path, "rb") as file:
            return file.read(), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: object = None,
    execution_devices: object = None,
) -> "Loaded":
    """Return an executable whose bytes `serialize` gave.

    They are machine code, so that they must come from a source that you trust.
    """
    if execution_devices is not None:
        raise missing("execution_devices of jax.experimental.serialize_executable")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "executable")
        with open(path, "wb") as file:
            file.write(serialized)
        return Loaded(plait.export.load_compiled(path, trusted=True), in_tree, out_tree)


class Loaded:
    """An executable that was loaded, called like the function.

    Attributes:
      in_tree, out_tree: the structures of (args, kwargs) and of the results.
    """

    def __init__(self, artifact: Any, in_tree: Any, out_tree: Any):
        self._artifact, self.in_tree, self.out_tree = artifact, in_tree, out_tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on arguments of the types that it was compiled for."""
        return self._artifact.call(*args, **kwargs)
