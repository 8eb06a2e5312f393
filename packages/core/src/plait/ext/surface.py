"""Tools for libraries of array functions: constructors of functions, and checks of arguments.

    from plait.ext.ops.elementwise import exp, log1p
    from plait.ext.surface import fused, unary, value

    exponential = unary("exponential", exp, "Return e to the power of each element.")

    @fused
    def softplus(x):
        return log1p(exp(value(x)))

`plait.numpy`, `plait.scipy`, `plait.random`, `plait.nn` and `plait.image` are written with these
names and those of the other modules of `plait.ext`.

Invariant: nothing is defined here.
"""

from .._api.default_devices import placed_by_default
from .._api.strict_functions import agree, strict_binary, strict_unary
from .._api.surfaces import binary, fused, unary, value
from .._base.lazy import advise
from .._base.overriding import overridden
from .._base.source import hidden
from .._base.tracebacks import explained_calls, leaving, refused_call
from .._base.wrapping import found_by_name
from .._core.dispatch import dispatched
from .._ops.layout import OUT_SHARDING, all_free, beside, free, laid_out, offering, placed
from .._ops.static_arguments import fixed, fixed_each, flag, size_given
from .._ops.widening import judge_widening

__all__ = [
    "advise", "agree", "all_free", "beside", "binary", "dispatched", "explained_calls", "fixed",
    "fixed_each", "flag", "found_by_name", "free", "fused", "hidden", "judge_widening",
    "laid_out", "leaving", "offering", "OUT_SHARDING", "overridden", "placed",
    "placed_by_default", "refused_call", "size_given", "strict_binary", "strict_unary", "unary",
    "value",
]  # fmt: skip
