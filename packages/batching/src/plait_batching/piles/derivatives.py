"""Derivatives of `pile_map`, as an operation with a program on rows.

Invariant: only the rule tables of plait_autodiff load this module.
"""

from typing import Any

from plait.ext.ir import Program, speaks_of
from plait_autodiff.ext import Rowwise, rowwise

from .capacities import capacities_of
from .operation import RAGGED, SHARED, STACKED, SUMMED, pile_map


class _Examples(Rowwise):
    """Rows are examples; the lengths are the leading operands."""

    shared, summed = SHARED, SUMMED

    def lead(self, params: dict[str, Any]) -> int:
        return len(params["sizes"])

    def kinds(self, params: dict[str, Any]) -> tuple:
        return params["kinds"], params["outs"]

    def made(self, params: dict[str, Any], program: Program, kinds: tuple, outs: tuple) -> dict:
        return {**params, "program": program, "kinds": kinds, "outs": outs}

    def each(self, aval: Any, params: dict[str, Any]) -> str:
        return RAGGED if capacities_of(params["sizes"], params["size"]).axes(aval) else STACKED

    def apart(self, equation: Any, params: dict[str, Any]) -> bool:
        names = frozenset([s.name for s in params["sizes"]])
        return not speaks_of(names, (*equation.inputs, *equation.outputs), equation.params)


rowwise(pile_map, _Examples())
