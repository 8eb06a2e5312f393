"""Derivatives of `pile_map`: its halves and its reversal are operations of the same kind.

A residual that is an operand is handed on; cotangents of what all examples share are summed.

Invariant: only the tables of plait_autodiff load this.
"""

from collections.abc import Sequence
from typing import Any

from plait_autodiff.ext import (
    choose,
    divide,
    is_linear,
    merge,
    part,
    split_program,
    split_rules,
    transpose_program,
    transpose_rules,
)

from .operation import RAGGED, SHARED, STACKED, SUMMED, pile_map, ragged_axes


def _common(params: dict) -> dict:
    return {q: params[q] for q in ("sizes", "size", "axis_name", "padded")}


def _kind(aval: Any, params: dict) -> str:
    """How a value that examples have each their own of passes from one half to the other."""
    names = [s.name for s in params["sizes"]]
    return RAGGED if ragged_axes(aval.shape, names) else STACKED


@split_rules.rule(pile_map)
def _(split, args, params):
    kinds, outs, common = params["kinds"], params["outs"], _common(params)
    k = len(params["sizes"])
    lengths, args = list(args[:k]), args[k:]
    unknown = divide(split, args)
    h = split_program(params["program"], unknown)
    m = len(h.known.outputs) - h.residuals
    place = {v: i for i, v in enumerate(h.known.inputs)}
    at = [place.get(v) for v in h.known.outputs[m:]]  # of a residual that is at hand
    known, known_kinds = part(args, unknown, False), part(kinds, unknown, False)
    first = choose(h.known, (*(True,) * m, *[i is None for i in at]))
    made = [_kind(v.aval, params) for v, i in zip(h.known.outputs[m:], at) if i is None]
    got: list = []
    if first.outputs:
        results = (*part(outs, h.out_unknown, False), *made)
        mine = {"program": first, "kinds": tuple(known_kinds), "outs": results}
        got = pile_map.bind(*lengths, *known, **mine, **common)
    fresh, fresh_kinds = iter(got[m:]), iter(made)
    residuals = [next(fresh) if i is None else known[i] for i in at]
    kept = [next(fresh_kinds) if i is None else known_kinds[i] for i in at]
    later: Sequence[Any] = []
    if h.unknown.outputs:
        mine = {
            "program": h.unknown,
            "kinds": (*kept, *part(kinds, unknown)),
            "outs": tuple(part(outs, h.out_unknown)),
        }
        operands = [*lengths, *residuals, *part(args, unknown)]
        later = split.stage.apply(pile_map, operands, {**mine, **common})
    return merge(h.out_unknown, later, got[:m])


@transpose_rules.rule(pile_map)
def _(cts, *args, program, kinds, outs, sizes, **common):
    k = len(sizes)
    lengths, args = args[:k], args[k:]
    linear, given = tuple(map(is_linear, args)), tuple([c is not None for c in cts])
    back, present = transpose_program(program, linear, given)
    wanted = [q for q, there in zip(part(kinds, linear), present) if there]
    results = tuple([SUMMED if q == SHARED else q for q in wanted])
    ins = [*part(kinds, linear, False), *[SHARED if q == SUMMED else q for q in part(outs, given)]]
    got: Any = iter(())
    if back.outputs:
        operands = [*lengths, *part(args, linear, False), *part(cts, given)]
        mine = {"program": back, "kinds": tuple(ins), "outs": results, "sizes": sizes}
        got = iter(pile_map.bind(*operands, **mine, **common))
    there = iter(present)
    found = [(next(got) if next(there) else None) if f else None for f in linear]
    return [None] * k + found
