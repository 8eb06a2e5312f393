"""Functions with machine code: what was compiled of an exported one, for given sizes.

Invariant: it is called for the types that it was compiled for, and for no others.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from plait.ext.errors import ArgumentError, border
from plait.ext.lower import circumstances
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import is_tracer

from . import container, sealing, signature
from .calling import MachineCode

_NO_SIZES = "give the number for each of its symbolic sizes: exported.compile({'b': 8})"


class CompiledArtifact:
    """A function with its executables, for some lists of types.

    Attributes:
      exported: the function, of which it holds the portable form.
      types: of the arguments, for each executable.
    """

    __slots__ = ("exported", "types", "_executables")

    def __init__(self, exported: Any, executables: Mapping[tuple[Aval, ...], bytes]):
        self.exported, self.types = exported, tuple(executables)
        self._executables = dict(executables)

    def __repr__(self) -> str:
        each = "; ".join([", ".join(map(repr, ins)) for ins in self.types])
        return f"<CompiledArtifact {self.exported.fun_name}({each})>"

    @border
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to arrays, by what was compiled for their types.

        Raises ArgumentError for types that nothing was compiled for; what `Exported.call` raises.
        """
        leaves, _ = flatten((args, kwargs))
        exported = self.exported
        if any(map(is_tracer, leaves)):
            raise ArgumentError(
                f"{exported.fun_name} is compiled, and can not be transformed",
                fix="call the function it was compiled from: CompiledArtifact.exported",
            )
        if len(leaves) == len(exported.in_avals):
            given = tuple([exported.as_array(i, x).aval for i, x in enumerate(leaves)])
            if given not in exported.compiled and given not in self.types:
                self._refuse(given)
        return exported.call(*args, **kwargs)

    def _refuse(self, given: tuple[Aval, ...]) -> None:
        exported = self.exported
        exported.result_types(given)  # which says of arguments that never fit
        there = "; ".join([", ".join(map(repr, ins)) for ins in self.types])
        raise ArgumentError(
            f"{exported.fun_name} was compiled for {there}, and is called with "
            f"{', '.join(map(repr, given))}",
            fix="compile it for these sizes, too, or call CompiledArtifact.exported, which "
            "compiles what it has not met",
        )

    @border
    def save(self, path: "str | os.PathLike[str]", *, key: bytes | None = None) -> None:
        """Write the function and its executables to a file, which `load_compiled` reads.

        Args:
          path: of the file.
          key: as for `Exported.serialize`: who reads the file with it knows who wrote it.

        Raises what `Exported.serialize` raises, and NotWritable, an OSError.
        """
        sealing.write_file(path, *self.said(), key)

    def said(self) -> tuple[dict[str, Any], dict[str, container.Member]]:
        """The manifest and the members of its file."""
        manifest, members = self.exported.said(0)
        listed = []
        for k, (ins, data) in enumerate(self._executables.items()):
            name = f"executable{k}{container.EXECUTABLE}"
            members[name] = data
            listed.append({"member": name, "inputs": [*map(signature.shown, ins)]})
        manifest["executables"] = {"made_where": machine_here(), "each": listed}
        manifest["requires"] = [*manifest["requires"], "executables"]
        return manifest, members


def machine_here() -> dict[str, str]:
    """What machine code made here depends on, by name; what is long, by its digest."""
    found = {}
    for name, value in circumstances().items():
        text = json.dumps(value)
        digest = hashlib.sha256(text.encode()).hexdigest()
        found[name] = text if len(text) < 80 else f"sha256 {digest}"
    return found


def compiled(exported: Any, sizes: Sequence[Any]) -> CompiledArtifact:
    """An exported function, compiled for some sizes; see `Exported.compile`."""
    if exported.symbolic and not sizes:
        raise ArgumentError(f"{exported.fun_name} is compiled for no sizes", fix=_NO_SIZES)
    made = {}
    for each in sizes or [None]:
        known = exported.sizes_of(each)
        ins = tuple([signature.with_sizes(a, known) for a in exported.in_avals])
        made[ins] = exported.executable_for(ins)
        if exported.division is not None:
            exported.load_made(ins, MachineCode(made[ins], exported.custom_calls))
    return CompiledArtifact(exported, made)
