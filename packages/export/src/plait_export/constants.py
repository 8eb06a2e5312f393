"""Large constants that several modules of an artifact have: each is held once.

A derivative computes with the weights of its function.  Where it is saved, a large constant that
an earlier module of the artifact has is a call of a function of ours instead, with the number of
that constant; where it is read, the constant is put back.

Invariant: a module that leaves here is complete, or goes into a file beside those that have what
it lacks: numbers are given in the order of modules, and in each of its operations.
"""

from math import prod
from typing import Any

from plait.ext.lower import attr, lock, mlir

from .errors import ArtifactError
from .portable import artifact_of, operations, parsed, replace

HELD = "plait.constant"
"""The function that a module calls for a constant of an earlier one; `backend_config` says which
one.  No complete module calls it."""

_LARGE = 256
"""Elements from which on a constant is worth a number."""


class Constants:
    """The large constants of modules, in order."""

    __slots__ = ("_numbers", "_held", "_modules")

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._held: list[Any] = []
        self._modules: list[Any] = []  # in which the operations are that are held

    def hollowed(self, artifact: bytes) -> bytes:
        """A portable module with numbers for the constants that are held; its others are held
        afterwards."""
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
        """A portable module with the constants that are held instead of their numbers; its others
        are held afterwards.

        Raises ArtifactError for numbers of none, and for constants of other types.
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

    def _hold(self, module: Any) -> None:
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


def _large(module: Any) -> list[tuple[Any, Any]]:
    """The constants that are worth a number, each with what tells it from others."""
    constants = operations(module, lambda op: op.name == "stablehlo.constant")
    shape = mlir.bindings().ir.RankedTensorType
    long = [op for op in constants if prod(shape(op.results[0].type).shape) >= _LARGE]
    return [(op, value) for op in long if (value := _value(op)) is not None]


def _value(op: Any) -> Any:
    """What tells a constant from others; None if all its elements are one, which is written
    short."""
    try:
        value = op.attributes["value"]
    except TypeError:  # jaxlib's bindings have no attributes of complex numbers
        text = str(op)
        return text.partition("=")[2] if len(text) >= _LARGE else None
    return None if getattr(value, "is_splat", True) else value


def _is_number(op: Any) -> bool:
    return op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value == HELD


def _put_number(op: Any, number: int) -> None:
    """A call for a constant in the place of it."""
    m = mlir.bindings()
    attributes = {
        "call_target_name": mlir.string(HELD),
        "api_version": attr("4 : i32"),
        "backend_config": attr(f"{{number = {number} : i64}}"),
    }
    types, ip = [r.type for r in op.results], m.ir.InsertionPoint(op)
    made = m.create("stablehlo.custom_call", types, [], attributes, None, 0, op.location, ip)
    replace(op, list(made.results))
