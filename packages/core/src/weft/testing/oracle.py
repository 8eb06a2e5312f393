"""Programs evaluated by numpy, one equation after the other: an oracle for what rewrites them.

Invariant: nothing here is compiled; what a primitive means is said by numpy, and what operations
with programs mean by Python's own control flow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import MissingRule
from ..interpreter import Interpreter, use
from ..ir import Program, evaluate
from ..ops import elementwise as el
from ..ops import higher, mapping, reduction, shape
from ..values import Array, Literal

__all__ = ["ArrayOracle", "numpy_evaluate"]


def numpy_evaluate(program: Program, args: Sequence[Any]) -> list[np.ndarray]:
    """What the program returns for numpy arrays, as numpy has it.

    Knows the elementwise, shape and reduction primitives that `random_program` uses, and calls,
    branches and loops; raises MissingRule for others.

    >>> import numpy as np, weft as wf
    >>> p = wf.make_program(lambda x: x * 2 + 1)(np.float32([1, 2]))
    >>> wf.testing.numpy_evaluate(p, [np.float32([1, 2])])
    [array([3., 5.], dtype=float32)]
    """
    with use(ArrayOracle()), np.errstate(all="ignore"):
        return [_array(x) for x in evaluate(program, [np.asarray(a) for a in args])]


def _array(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, Array | Literal) else np.asarray(x)


class ArrayOracle(Interpreter):
    """Applies primitives to numpy arrays."""

    does = "the oracle"

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        xs = [_array(a) for a in args]
        meaning = _MEANING.get(prim.name)
        if meaning is None:
            raise MissingRule(f"the oracle does not know {prim}")
        return meaning(*xs, **params)


def _whole(f: Callable) -> Callable:
    """Ufuncs return scalars for arrays without axes, and may widen."""
    return lambda *xs, **p: np.asarray(f(*xs, **p), xs[0].dtype)


def _power(x: np.ndarray, exponent: int) -> np.ndarray:
    """By repeated squaring, as it is compiled."""
    n, out = abs(exponent), np.ones_like(x)
    first = True
    while n:
        if n & 1:
            out, first = (x if first else out * x), False
        n >>= 1
        x = x * x if n else x
    return np.asarray(out if exponent >= 0 else 1 / out, x.dtype)


def _convert(x: np.ndarray, dtype: np.dtype, weak: bool) -> np.ndarray:
    if dtype == bool:
        return np.asarray(x != 0)
    narrow = x.dtype.kind == "c" and dtype.kind != "c"
    return np.asarray(np.real(x) if narrow else x).astype(dtype)


def _broadcast(x: np.ndarray, shape: tuple, dims: tuple) -> np.ndarray:
    sizes = [1] * len(shape)
    for n, k in zip(x.shape, dims):
        sizes[k] = n
    order = np.argsort(dims)
    return np.broadcast_to(x.transpose(order).reshape(sizes), shape)


def _slice(x: np.ndarray, starts: tuple, limits: tuple, strides: tuple) -> np.ndarray:
    return x[tuple(map(slice, starts, limits, strides))]


def _pad(x: np.ndarray, value: Any, low: tuple, high: tuple, interior: tuple) -> np.ndarray:
    inner = [n + max(n - 1, 0) * i for n, i in zip(x.shape, interior)]
    full = np.full([a + max(n, 0) + b for n, a, b in zip(inner, low, high)], value, x.dtype)
    full[tuple([slice(a, a + n, i + 1) for n, a, i in zip(inner, low, interior)])] = x
    return full


def _iota(shape: tuple, axis: int, dtype: np.dtype) -> np.ndarray:
    sizes = [n if i == axis else 1 for i, n in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(sizes), shape)


def _cond(index: Any, *xs: Any, branches: tuple) -> list:
    return evaluate(branches[int(index)], xs)


def _while(
    *xs: Any,
    cond: Any,
    body: Any,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
) -> list:
    k, turns = cond_consts + body_consts, 0
    carry = list(xs[k:])
    while turns != max_steps and _array(evaluate(cond, [*xs[:cond_consts], *carry])[0]):
        carry, turns = evaluate(body, [*xs[cond_consts:k], *carry]), turns + 1
    return carry


def _scan(
    *xs: Any, body: Any, consts: int, carry: int, length: int, reverse: bool, unroll: int
) -> list:
    k = consts + carry
    state, rows = list(xs[consts:k]), xs[k:]
    ys: list[Any] = [[None] * length for _ in body.outputs[carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        out = [_array(o) for o in evaluate(body, [*xs[:consts], *state, *(r[i] for r in rows)])]
        state = out[:carry]
        for y, o in zip(ys, out[carry:]):
            y[i] = o
    types = body.out_avals[carry:]
    stacks = [np.stack(y) if y else np.zeros((0, *t.shape), t.dtype) for y, t in zip(ys, types)]
    return [*state, *stacks]


def _map(*xs: Any, program: Any, in_axes: tuple, out_axes: tuple, size: int, **_: Any) -> list:
    rows = [[x if a is None else x.take(i, a) for x, a in zip(xs, in_axes)] for i in range(size)]
    columns = zip(*[map(_array, evaluate(program, r)) for r in rows])
    return [np.stack(c, a) for c, a in zip(columns, out_axes)]


_PLAIN = {
    el.neg: np.negative, el.sign: np.sign, el.floor: np.floor, el.ceil: np.ceil, el.sin: np.sin,
    el.cos: np.cos, el.tanh: np.tanh, el.exp: np.exp, el.sqrt: np.sqrt, el.mul: np.multiply,
    el.add: np.add, el.sub: np.subtract, el.maximum: np.maximum, el.minimum: np.minimum,
    el.div: np.divide, el.rem: np.fmod, el.and_: np.bitwise_and, el.or_: np.bitwise_or,
    el.xor: np.bitwise_xor, el.not_: np.invert, el.conj: np.conj, el.stop: np.array,
    el.shift_left: np.left_shift, el.shift_right_arithmetic: np.right_shift,
    el.integer_pow: _power, reduction.reduce_sum: lambda x, axes: x.sum(axes),
    reduction.reduce_max: lambda x, axes: x.max(axes),
}  # fmt: skip
_OTHERS = {
    el.abs_: np.abs, el.is_finite: np.isfinite, el.real: np.real, el.imag: np.imag,
    el.eq: np.equal, el.ne: np.not_equal, el.lt: np.less, el.le: np.less_equal,
    el.gt: np.greater, el.ge: np.greater_equal,
    el.select: np.where, el.clamp: lambda low, x, high: np.minimum(np.maximum(x, low), high),
    shape.convert_: _convert, shape.broadcast_in_dim: _broadcast, shape.slice_: _slice,
    shape.reshape_: lambda x, shape: x.reshape(shape), shape.iota_: _iota, shape.pad_: _pad,
    shape.squeeze_: lambda x, axes: x.squeeze(axes), shape.rev: lambda x, axes: np.flip(x, axes),
    shape.transpose_: lambda x, perm: x.transpose(perm), shape.barrier: lambda *xs: list(xs),
    shape.concatenate_: lambda *xs, axis: np.concatenate(xs, axis),
    higher.call: lambda *xs, program: evaluate(program, xs), higher.cond: _cond,
    higher.while_: _while, higher.scan: _scan, mapping.map_axes: _map,
}  # fmt: skip
_MEANING = {
    **{p.name: _whole(f) for p, f in _PLAIN.items()}, **{p.name: f for p, f in _OTHERS.items()}
}  # fmt: skip
