"""Storage of large constants that several modules of an artifact share: each is stored once.

A derivative computes with the weights of its function.  In a saved derivative, a call of
`plait.constant` with a number replaces each large constant that an earlier module has.  The reader
puts the constant back.

Invariant: a module returned here is complete, or goes into one file with the modules that hold the
missing constants.  Constants are numbered in the order of modules, then of operations.
"""

from math import prod
from typing import Any

from plait.ext.lower import attr, lock, mlir

from .errors import ArtifactError
from .portable import artifact_of, operations, parsed, replace

HELD = "plait.constant"
"""The function that a module calls for a constant of an earlier module; `backend_config` holds its
number.  No complete module calls it."""

_LARGE = 256
"""The least number of elements of a constant that is shared."""


class Constants:
    """The large constants of a list of modules, numbered in order."""

    __slots__ = ("_numbers", "_held", "_modules")

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._held: list[Any] = []
        self._modules: list[Any] = []  # the modules that own the operations in `_held`

    def hollowed(self, artifact: bytes) -> bytes:
        """Replace the constants of a portable module that are held by their numbers.

        The other large constants of the module are held afterwards.
        """
        with lock:
            module = parsed(artifact)
            known = []
            for op, value in _large(module):
                if value in self._numbers:
                    known.append((op, self._numbers[value]))
            for op, number in known:
                _put_number(op, number)
            self._hold(module)
            code = mlir.bytecode(module) if known else b""
        return artifact_of(code, False) if known else artifact

    def filled(self, artifact: bytes) -> bytes:
        """Replace the numbers in a portable module by the constants that are held.

        The other large constants of the module are held afterwards.

        Raises ArtifactError for unknown numbers, and for constants of other types.
        """
        with lock:
            module = parsed(artifact)
            lacking = operations(module, _is_number)
            found = [self._held_for(op) for op in lacking]
            self._hold(module)
            for op, held in zip(lacking, found, strict=True):
                copy = held.operation.clone(mlir.bindings().ir.InsertionPoint(op))
                replace(op, list(copy.results))
            code = mlir.bytecode(module) if lacking else b""
        return artifact_of(code, False) if lacking else artifact

    def _hold(self, module: object) -> None:
        self._modules.append(module)
        for op, value in _large(module):
            if value not in self._numbers:
                self._numbers[value] = len(self._held)
                self._held.append(op)

    def _held_for(self, op: Any) -> Any:
        held: Any = None
        try:
            number = int(op.attributes["backend_config"]["number"])
            held = self._held[number] if number >= 0 else None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            pass
        if held is not None and not list(op.operands):
            if [r.type for r in held.results] == [r.type for r in op.results]:
                return held
        raise ArtifactError("the artifact is damaged: a constant of a derivative is missing")


def _large(module: object) -> list[tuple[Any, Any]]:
    """Return the constants that can be shared, each with a key that equal constants share."""
    constants = operations(module, lambda op: op.name == "stablehlo.constant")
    shape = mlir.bindings().ir.RankedTensorType
    long = [op for op in constants if prod(shape(op.results[0].type).shape) >= _LARGE]
    return [(op, value) for op in long if (value := _value(op)) is not None]


def _value(op: Any) -> Any:
    """Return a key that equal constants share.

    Returns None for a constant of equal elements, which is stored in a few bytes anyway.
    """
    try:
        value = op.attributes["value"]
    except TypeError:  # jaxlib's bindings have no attributes of complex numbers
        text = str(op)
        return text.partition("=")[2] if len(text) >= _LARGE else None
    return None if getattr(value, "is_splat", True) else value


def _is_number(op: Any) -> bool:
    return op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value == HELD


def _put_number(op: Any, number: int) -> None:
    """Replace a constant by a call with its number."""
    m = mlir.bindings()
    attributes = {
        "call_target_name": mlir.string(HELD),
        "api_version": attr("4 : i32"),
        "backend_config": attr(f"{{number = {number} : i64}}"),
    }
    types, ip = [r.type for r in op.results], m.ir.InsertionPoint(op)
    made = m.create("stablehlo.custom_call", types, [], attributes, None, 0, op.location, ip)
    replace(op, list(made.results))
