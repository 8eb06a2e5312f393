"""Operations that keep their name in an artifact.

Some operations of Plait are one operation of StableHLO.  Others lower to several, with loops or
bit manipulation: an error function, a sort, a factorisation.  Their derivatives and mapping rules
do not follow from the lowered form.  An export makes each of these a function of the module with
the attribute `plait.operation`: the text of a program of that operation alone.  Runtimes may
ignore the attribute; the reader restores the operation from it.

Invariant: an operation that is one operation of StableHLO lowers to it and is read back as itself.
Any other operation on numbers keeps its name, unless a parameter contains a symbolic size.
"""

from collections.abc import Callable
from typing import Any

import plait
from plait.ext.ir import Eqn, Program, freeze_params, programs_in
from plait.ext.ops import collective, contraction, convolution, fourier, indexing, reduction, shape
from plait.ext.ops import elementwise as el
from plait.ext.ops.callbacks import foreign
from plait.ext.ops.platforms import platform_index
from plait.ext.ops.random import rng_bit_generator
from plait.ext.rules import Collective, Elementwise
from plait.ext.sizes import Dim
from plait.ext.trace import as_list, staged
from plait.ext.types import COMPLEX, Opaque

PLAIN = frozenset([
    el.abs_, el.add, el.and_, el.ceil, el.clamp, el.clz, el.complex_, el.cos, el.div, el.eq, el.exp,
    el.expm1, el.floor, el.ge, el.gt, el.imag, el.is_finite, el.le, el.log, el.log1p, el.logistic,
    el.lt, el.maximum, el.minimum, el.mul, el.ne, el.neg, el.not_, el.once, el.or_,
    el.population_count,
    el.real, el.reduce_precision, el.rem, el.round_away, el.round_even, el.rsqrt, el.select,
    el.shift_left, el.shift_right_arithmetic, el.shift_right_logical, el.sign, el.sin, el.sqrt,
    el.sub, el.tan, el.tanh, el.xor, el.bitcast_,
    shape.barrier, shape.broadcast_in_dim, shape.concatenate_, shape.convert_, shape.dim_,
    shape.iota_, shape.pad_, shape.reshape_, shape.rev, shape.slice_, shape.squeeze_,
    shape.transpose_,
    contraction.dot_general, convolution.conv_general, fourier.fft_,
    indexing.dynamic_slice_, indexing.dynamic_update_slice_, indexing.gather_, indexing.scatter_,
    indexing.scatter_add_, indexing.scatter_mul_, indexing.scatter_min_, indexing.scatter_max_,
    reduction.reduce_sum, reduction.reduce_prod, reduction.reduce_max, reduction.reduce_min,
    reduction.reduce_and, reduction.reduce_or, reduction.reduce_xor,
    platform_index, rng_bit_generator, collective.pvary_,
])  # fmt: skip
"""Operations that lower to one of StableHLO's, or that the reader recovers from types."""

_PLAIN_BY_NAME = frozenset(["linalg.triangular_solve"])
"""The same for operations of the array library, whose modules only its users load."""

_OF_COMPLEX = frozenset([
    el.add, el.sub, el.mul, el.neg, el.real, el.imag, el.complex_, el.select, el.eq, el.ne,
])  # fmt: skip
"""The elementwise operations in `PLAIN` that lower to one operation for complex numbers, too."""


def names() -> Callable[[Eqn], tuple[Program, str] | None]:
    """Return a function from equations to (program of the equation alone, its text).

    It returns None for an equation that keeps no name.
    """
    made: dict[Any, tuple[Program, str] | None] = {}

    def named(e: Eqn) -> tuple[Program, str] | None:
        if _is_plain(e):
            return None
        avals = tuple([a.aval for a in e.inputs])
        key = e.prim, freeze_params(e.params), avals
        if key not in made:
            made[key] = _alone(e, avals)
        return made[key]

    return named


def _is_plain(e: Eqn) -> bool:
    prim = e.prim
    if prim.higher is not None or prim.ambient is not None or prim.effect is not None:
        return True
    if Collective in prim.traits or programs_in(e.params) or _has_names(tuple(e.params.values())):
        return True
    avals = [v.aval for v in (*e.inputs, *e.outputs)]
    if prim is foreign or any(isinstance(a.dtype, Opaque) for a in avals):
        return True
    turned = Elementwise in prim.traits and any(a.category == COMPLEX for a in avals)
    return prim in (_OF_COMPLEX if turned else PLAIN) or prim.name in _PLAIN_BY_NAME


def _has_names(x: object) -> bool:
    """Return whether a parameter contains a symbolic size."""
    return x.__class__ is Dim or isinstance(x, tuple | list) and any(map(_has_names, x))


def _alone(e: Eqn, avals: tuple) -> tuple[Program, str] | None:
    prim, params = e.prim, e.params
    name = prim.name.rpartition(".")[2]
    program = staged(lambda *xs: as_list(prim.bind(*xs, **params)), avals, name)
    if len(program.eqns) != 1 or program.eqns[0].prim is not prim:
        return None
    text = plait.text.show(program)
    try:
        plait.text.parse(text)
    except plait.errors.PlaitError:  # A parameter has no text form.
        return None
    return program, text
