"""Comparison of two programs.

Invariant: names of variables do not matter; which sub-programs and constants are shared does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.freezing import freeze
from .._core.array import Array, Literal, laid
from .._core.ir import Eqn, Program, Var


def same_program(a: Program, b: Program) -> bool:
    """Return whether two programs differ at most in the names of their variables.

    Types, equations in their order, parameters, sub-programs, outputs and the values of constants
    must agree; names of programs and source locations need not.
    """
    return _Pairs().programs(a, b)


class _Pairs:
    """A comparison of programs that compares each pair of them once."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], bool] = {}

    def programs(self, a: Program, b: Program) -> bool:
        if a is b:
            return True
        key = id(a), id(b)
        if key not in self.known:
            self.known[key] = self._programs(a, b)
        return self.known[key]

    def _programs(self, a: Program, b: Program) -> bool:
        pairs: dict[Any, Any] = {}

        def define(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
            pairs.update(zip(xs, ys))
            return len(xs) == len(ys) and all(x.aval is y.aval for x, y in zip(xs, ys))

        def atoms(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
            return len(xs) == len(ys) and all(map(atom, xs, ys))

        def atom(x: Any, y: Any) -> bool:
            if x.__class__ is Var:
                return pairs.get(x) is y
            return y.__class__ is Literal and x.aval is y.aval and _same_scalar(x.value, y.value)

        def equation(x: Eqn, y: Eqn) -> bool:
            return (
                x.prim is y.prim
                and atoms(x.inputs, y.inputs)
                and self.params(x.params, y.params)
                and define(x.outputs, y.outputs)
            )

        return (
            define(a.inputs, b.inputs)
            and define([v for v, _ in a.consts], [v for v, _ in b.consts])
            and all(_same_array(x, y) for (_, x), (_, y) in zip(a.consts, b.consts))
            and len(a.eqns) == len(b.eqns)
            and all(map(equation, a.eqns, b.eqns))
            and atoms(a.outputs, b.outputs)
        )

    def params(self, a: dict[str, Any], b: dict[str, Any]) -> bool:
        return a.keys() == b.keys() and all(self.values(a[k], b[k]) for k in a)

    def values(self, a: Any, b: Any) -> bool:
        if a.__class__ is not b.__class__:
            return False
        if a.__class__ is Program:
            return self.programs(a, b)
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.values, a, b))
        return a is b or _same_scalar(a, b)


def _same_scalar(a: object, b: object) -> bool:
    """Return whether scalars are equal by `freeze`, or both nan."""
    return freeze(a) == freeze(b) or (a.__class__ is b.__class__ and bool(a != a and b != b))


def _same_array(a: Array, b: Array) -> bool:
    if a is b:
        return True
    if not a.aval.same_type(b.aval):
        return False
    x, y = laid(a).numpy(), laid(b).numpy()
    return x.tobytes() == y.tobytes() or bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))
