"""Convolutions along ragged axes.

Invariant: a window reads zeros beyond an example's end.
"""

from plait.ext.ops.convolution import conv_general, dilated
from plait.ext.ops.shape import pad_
from plait.ext.sizes import Dim
from plait.ext.trace import use
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..carrier import pile_rules


@pile_rules.rule(conv_general)
def _(r, args, out, *, padding, lhs_dilation, dims, **how):
    x, y = args
    space = len(padding)
    lows = [lo for lo, _ in padding]
    if any(lo.__class__ is Dim for lo in lows):
        # The first window starts at another place in each example, so rows are moved beforehand.
        low, interior = [0] * x.aval.ndim, [0] * x.aval.ndim
        for a, lo, step in zip(dims.lhs_spec[2:], lows, lhs_dilation, strict=True):
            low[a], interior[a] = lo, step - 1
        none = (0,) * x.aval.ndim
        with use(r):
            zero = Literal(0, Aval((), x.aval.dtype))
            x = pad_.bind(x, zero, low=tuple(low), high=none, interior=tuple(interior))
        lows, lhs_dilation = [0] * space, (1,) * space
    # Compute as many windows as the longest example has, at the same positions in every example.
    # No valid window reads beyond the last one's end, so the padding there is chosen to fit.
    pairs = []
    steps = zip(*[axes[2:] for axes in dims], lows, lhs_dilation,
                how["window_strides"], how["rhs_dilation"], strict=True)  # fmt: skip
    for a, b, c, lo, dl, stride, dr in steps:
        size, window, count = [
            r.caps.longest(d) if r.caps.mine(d) else d
            for d in (x.aval.shape[a], y.aval.shape[b], out.shape[c])
        ]
        reach = (count - 1) * stride + dilated(window, dr)
        pairs.append((lo, reach - lo - dilated(size, dl)))
    params = {"padding": tuple(pairs), "lhs_dilation": lhs_dilation, "dims": dims, **how}
    return r.by_padding(conv_general, (x, y), out, params)
