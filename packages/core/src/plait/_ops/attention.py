"""Attention as one operation, for those who know a way of their own to do it.

`nn.dot_product_attention` is written with products and a softmax, and the compiler fuses what it
can.  Where sizes are known by name only nobody can say how much memory the products take, so the
operation stays one until it is known how it is run (`plait_batching.piles`).

Invariant: it is a function of its operands row by row: a query's result depends on that query, and
on all keys and values that it sees.
"""

from .._base.errors import ShapeError
from .._core.primitive import primitive
from .._types.avals import Aval
from .control_flow import expect
from .elementwise import FLOAT, agreed

__all__ = ["attention_", "attention_cotangent", "attention_tangent"]


@primitive("core.attention")
def attention_(
    q: Aval,
    k: Aval,
    v: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> Aval:
    """Softmax of the products of queries (queries, heads, depth) and keys (keys, groups, depth),
    times the values (keys, groups, columns); groups divides heads.

    If `causal`, query i sees the keys up to i; of a window (left, right), those from i - left to
    i + right.  Queries that see nothing get zeros.
    """
    return _fitting(q, k, v)


@primitive("core.attention_tangent")
def attention_tangent(
    q: Aval,
    k: Aval,
    v: Aval,
    dq: Aval,
    dk: Aval,
    dv: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> Aval:
    """The tangent of attention, for tangents of its operands: linear in them."""
    expect("attention", (q, k, v), (dq, dk, dv))
    return _fitting(q, k, v)


@primitive("core.attention_cotangent", many=True)
def attention_cotangent(
    q: Aval,
    k: Aval,
    v: Aval,
    ct: Aval,
    *,
    scale: float,
    causal: bool,
    window: tuple[int, int] | None,
) -> list:
    """The cotangents of the operands of attention, for one of its result."""
    expect("attention", (_fitting(q, k, v),), (ct,))
    return [x.strong() for x in (q, k, v)]


def _fitting(q: Aval, k: Aval, v: Aval) -> Aval:
    agreed("attention", FLOAT, *[Aval((), x.dtype) for x in (q, k, v)])
    fits = (
        q.ndim == k.ndim == v.ndim == 3
        and q.shape[2] == k.shape[2]
        and k.shape[:2] == v.shape[:2]
        and q.shape[1] % k.shape[1] == 0
    )
    if not fits:
        raise ShapeError(
            f"attention of {q!r}, {k!r} and {v!r}",
            fix="queries: (queries, heads, depth); keys: (keys, groups, depth); values: (keys, "
            "groups, columns), where groups divides heads",
        )
    return Aval((q.shape[0], q.shape[1], v.shape[2]), v.dtype)
