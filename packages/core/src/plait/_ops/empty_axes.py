"""Windows in axes that may be too short for them, because their size is known by name only.

With `n >= 0` a program is made once for all n, so that `x[0]` of an empty axis can not be refused
when it is made, as it is for arrays of known sizes.  This is what happens instead, everywhere:

* what is read by position from an axis that is empty is 0 (False), and with mode "fill" it is the
  fill value, as for every position outside;
* what is written by position into an axis that is empty is left out;
* `max`, `argmax` and their like give what the operation starts with: the least value, position 0.

The compiler's operations ask that a window fits.  So the axis is made long enough for it where that
is not certain, and cut again after writing; for sizes that suffice this is nothing, and gone when
the program is compiled.

Invariant: arrays of known sizes, and symbolic ones that are long enough for all sizes admitted, are
passed on as they are.
"""

from collections.abc import Sequence
from typing import Any

from .._types.avals import Aval
from .._types.dims import decide_ge, max_dim
from .._xla.lower import Emitter


def suffices(n: Any, m: Any) -> bool:
    """Whether a window of size `m` fits an axis of size `n` for all sizes, or both are numbers."""
    if n.__class__ is int and m.__class__ is int:
        return True
    return decide_ge(n, m) is True


def with_room(aval: Aval, windows: Sequence[Any]) -> Aval:
    """The type with axes as long as windows of these sizes need; itself if they are."""
    shape = aval.shape
    if all(map(suffices, shape, windows)):
        return aval
    return aval.with_shape(
        [n if suffices(n, m) else max_dim(n, m) for n, m in zip(shape, windows, strict=True)]
    )


def make_room(e: Emitter, x: Any, aval: Aval, wide: Aval, value: Any = 0) -> Any:
    """Lower the lengthening of `x`, of type `aval`, to the type that `with_room` gave."""
    if wide.shape == aval.shape:
        return x
    none = e.shape((0,) * aval.ndim)
    more = e.shape([m - n for n, m in zip(aval.shape, wide.shape, strict=True)])
    fill = e.constant(value, Aval((), aval.dtype))
    return e.op("stablehlo.dynamic_pad", [x, fill, none, more, none], wide)


def take_back(e: Emitter, x: Any, wide: Aval, aval: Aval) -> Any:
    """Lower the cutting of what `make_room` lengthened."""
    if wide.shape == aval.shape:
        return x
    none, ones = e.shape((0,) * aval.ndim), e.shape((1,) * aval.ndim)
    return e.op("stablehlo.real_dynamic_slice", [x, none, e.shape(aval.shape), ones], aval)


def together(aval: Aval, like: Aval, wide: Aval, axes: Sequence[int], with_: Sequence[int]) -> Aval:
    """The type with axes `axes` as long as axes `with_` of `like`, where they are so in `wide`."""
    shape = list(aval.shape)
    for a, b in zip(axes, with_, strict=True):
        if wide.shape[b] is not like.shape[b]:
            shape[a] = wide.shape[b]
    return aval.with_shape(shape)
