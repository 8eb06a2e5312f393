"""Convolutions along ragged axes.

Invariant: what a window reads beyond an example's end is zero.
"""

from plait.ext.ops.convolution import (
    conv_general,
)
from plait.ext.ops.shape import (
    pad_,
)
from plait.ext.sizes import (
    Dim,
)
from plait.ext.trace import (
    use,
)
from plait.ext.types import (
    Aval,
)
from plait.ext.values import (
    Literal,
)

from ..carrier import pile_rules


@pile_rules.rule(conv_general)
def _(r, args, out, *, padding, lhs_dilation, dims, **how):
    x, y = args
    params = {"padding": padding, "lhs_dilation": lhs_dilation, "dims": dims, **how}
    if not any(p.__class__ is Dim for pair in padding for p in pair):
        return r.by_padding(conv_general, args, out, params)
    low, high, interior = [0] * x.aval.ndim, [0] * x.aval.ndim, [0] * x.aval.ndim
    for a, (lo, hi), step in zip(dims.lhs_spec[2:], padding, lhs_dilation, strict=True):
        low[a], high[a], interior[a] = lo, hi, step - 1
    none = ((0, 0),) * len(padding)
    with use(r):  # padding that depends on sizes is an operation of its own
        zero = Literal(0, Aval((), x.aval.dtype))
        padded = pad_.bind(x, zero, low=tuple(low), high=tuple(high), interior=tuple(interior))
        params |= {"padding": none, "lhs_dilation": (1,) * len(padding)}
        return conv_general.bind(padded, y, **params)
