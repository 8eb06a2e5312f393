"""Windows along axes of symbolic size, which may be too short for them.

With `n >= 0` a program is made once for all n.  `x[0]` of a possibly empty axis therefore cannot be
refused during tracing, as it is for arrays of known sizes.  Instead, everywhere:

* reading by position from an empty axis gives 0 (False), and with mode "fill" the fill value, as
  for every position outside;
* writing by position into an empty axis has no effect;
* `max`, `argmax` and similar functions give their start value: the least value, position 0.

The compiler's operations require that a window fits.  Where that is uncertain, the axis is padded
to the window's size and cut again after writing.  For sizes that suffice the pad is empty, and the
compiler removes it.

Invariant: arrays of known sizes, and symbolic ones that are long enough for all sizes admitted, are
passed on as they are.
"""

from collections.abc import Sequence
from typing import Any

from .._base.jaxlib_api import IrValue
from .._types.avals import Aval
from .._types.dims import Dim, decide_ge, max_dim
from .._xla.lower import Emitter


def suffices(n: Dim | int, m: Dim | int) -> bool:
    """Return True if a window of size `m` always fits an axis of size `n`, or both are ints."""
    if n.__class__ is int and m.__class__ is int:
        return True
    return decide_ge(n, m) is True


def with_room(aval: Aval, windows: Sequence[Any]) -> Aval:
    """Return the type with axes long enough for these windows; `aval` itself if they are."""
    shape = aval.shape
    if all(map(suffices, shape, windows)):
        return aval
    return aval.with_shape(
        [n if suffices(n, m) else max_dim(n, m) for n, m in zip(shape, windows, strict=True)]
    )


def make_room(e: Emitter, x: IrValue, aval: Aval, wide: Aval, value: float = 0) -> Any:
    """Pad `x`, of type `aval`, to the type that `with_room` returned."""
    if wide.shape == aval.shape:
        return x
    none = e.shape((0,) * aval.ndim)
    more = e.shape([m - n for n, m in zip(aval.shape, wide.shape, strict=True)])
    fill = e.constant(value, Aval((), aval.dtype))
    return e.op("stablehlo.dynamic_pad", [x, fill, none, more, none], wide)


def take_back(e: Emitter, x: IrValue, wide: Aval, aval: Aval) -> Any:
    """Cut `x`, which `make_room` padded, back to the type `aval`."""
    if wide.shape == aval.shape:
        return x
    none, ones = e.shape((0,) * aval.ndim), e.shape((1,) * aval.ndim)
    return e.op("stablehlo.real_dynamic_slice", [x, none, e.shape(aval.shape), ones], aval)


def together(aval: Aval, like: Aval, wide: Aval, axes: Sequence[int], with_: Sequence[int]) -> Aval:
    """Return the type with axes `axes` as long as axes `with_` of `wide`, where `wide` padded
    `like`."""
    shape = list(aval.shape)
    for a, b in zip(axes, with_, strict=True):
        if wide.shape[b] is not like.shape[b]:
            shape[a] = wide.shape[b]
    return aval.with_shape(shape)
