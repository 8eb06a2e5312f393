"""Exported functions with machine code, compiled for given sizes.

Invariant: such a function runs only for the argument types that it was compiled for.
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
    """An exported function with executables for some lists of argument types.

    Attributes:
      exported: the function in portable form.
      types: the argument types of each executable.
    """

    __slots__ = ("exported", "types", "_executables")
    exported: Any
    types: tuple[tuple[Aval, ...], ...]

    def __init__(self, exported: Any, executables: Mapping[tuple[Aval, ...], bytes]):
        self.exported, self.types = exported, tuple(executables)
        self._executables = dict(executables)

    def __repr__(self) -> str:
        each = "; ".join([", ".join(map(repr, ins)) for ins in self.types])
        return f"<CompiledArtifact {self.exported.fun_name}({each})>"

    @border
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to arrays, with the executable for their types.

        Raises ArgumentError for types without an executable, and what `Exported.call` raises.
        """
        leaves, _ = flatten((args, kwargs))
        exported = self.exported
        if any(map(is_tracer, leaves)):
            raise ArgumentError(
                f"{exported.fun_name} is compiled, and cannot be transformed",
                fix="call the function it was compiled from: CompiledArtifact.exported",
            )
        if len(leaves) == len(exported.in_avals):
            given = tuple([exported.as_array(i, x).aval for i, x in enumerate(leaves)])
            if given not in exported.compiled and given not in self.types:
                self._refuse(given)
        return exported.call(*args, **kwargs)

    def _refuse(self, given: tuple[Aval, ...]) -> None:
        exported = self.exported
        # Arguments that do not fit any sizes get the more precise error of `result_types`.
        exported.result_types(given)
        there = "; ".join([", ".join(map(repr, ins)) for ins in self.types])
        raise ArgumentError(
            f"{exported.fun_name} was compiled for {there}, and is called with "
            f"{', '.join(map(repr, given))}",
            fix="compile it for these sizes, too, or call CompiledArtifact.exported, which "
            "compiles what it has not met",
        )

    @border
    def save(self, path: "str | os.PathLike[str]", *, key: bytes | None = None) -> None:
        """Write the function and its executables to a file that `load_compiled` reads.

        Args:
          path: the path of the file.
          key: a key that seals the file, as for `Exported.serialize`.  Reading with the same key
            proves that a holder of the key wrote the file.

        Raises what `Exported.serialize` raises, and NotWritable, an OSError.
        """
        sealing.write_file(path, *self.said(), key)

    def said(self) -> tuple[dict[str, Any], dict[str, container.Member]]:
        """Return the manifest and the members of the artifact file."""
        manifest, members = self.exported.said(0)
        listed = []
        for k, (ins, data) in enumerate(self._executables.items()):
            name = f"executable{k}{container.EXECUTABLE}"
            members[name] = data
            listed.append({"member": name, "inputs": [*map(signature.shown, ins)]})
        manifest["requires"] = [*manifest["requires"], "executables"]
        there = {**machine_here(), FUNCTION: function_of(manifest, listed)}
        manifest["executables"] = {"made_where": there, "each": listed}
        return manifest, members


FUNCTION = "function"
"""The fact that names the function whose code it is."""


def function_of(manifest: Mapping[str, Any], listed: Sequence[Any]) -> str:
    """Return a digest of everything in a manifest that the calls of its executables depend on.

    The runtime does not compare arguments with machine code, and code that runs on arguments of
    other types reads memory that is not its own.
    """
    described = [
        manifest.get(k) for k in ("platforms", "sizes", "custom_calls", "weights", "devices")
    ]
    types = [container.field(manifest, side, dict).get("types") for side in ("inputs", "outputs")]
    text = json.dumps([described, types, listed], sort_keys=True)
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def machine_here() -> dict[str, str]:
    """Return the facts that machine code made here depends on, by name.

    Values of 80 characters or more are replaced by their SHA-256 digest.
    """
    found = {}
    for name, value in circumstances().items():
        text = json.dumps(value)
        digest = hashlib.sha256(text.encode()).hexdigest()
        found[name] = text if len(text) < 80 else f"sha256 {digest}"
    return found


def compiled(exported: Any, sizes: Sequence[Any]) -> CompiledArtifact:
    """Compile an exported function for some sizes; see `Exported.compile`."""
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
