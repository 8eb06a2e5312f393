"""Elementwise functions computed to a requested accuracy.

Invariant: the requested accuracy is part of the program.  A platform with a single implementation
of a function uses that one.
"""

from .._base.errors import ArgumentError
from .._base.jaxlib_api import IrValue
from .._core.carrier import expand_rules
from .._core.primitive import Primitive, primitive
from .._plugins.traits import Elementwise
from .._types.avals import FLOATING, Aval
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr
from . import elementwise as el

__all__ = ["accurate", "PLAIN"]

_HLO = {
    "cbrt": "cbrt", "cos": "cosine", "exp": "exponential", "expm1": "exponential_minus_one",
    "log": "log", "log1p": "log_plus_one", "logistic": "logistic", "rsqrt": "rsqrt",
    "sin": "sine", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
PLAIN: dict[str, Primitive] = {name: getattr(el, name) for name in _HLO}
"""The functions by name, without an accuracy request."""


@primitive("core.accurate", traits=(Elementwise,))
def accurate(x: Aval, *, of: str, mode: str, tolerance: tuple) -> Aval:
    """Apply the function named `of`, in the most accurate way (mode "highest") or within a
    `tolerance`: (absolute, relative, units in the last place)."""
    if of not in PLAIN:
        raise ArgumentError(
            f"the accuracy of {of!r} cannot be chosen", fix=f"use one of {', '.join(PLAIN)}"
        )
    return PLAIN[of].infer((x,), {})


@lower_rules.rule(accurate)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    of: str,
    mode: str,
    tolerance: tuple[float | int, ...],
):
    if ins[0].category != FLOATING:
        return lower_rules[PLAIN[of]](e, xs, ins, outs)
    absolute, relative, units = tolerance
    said = f"atol = {absolute:e}, rtol = {relative:e}, ulps = {units}, "
    how = f"{said if mode == 'tolerance' else ''}mode = #stablehlo.result_accuracy_mode"
    asked = attr(f"#stablehlo.result_accuracy<{how}<{mode.upper()}>>")
    if of == "cbrt":
        xs = [el.without_subnormals(e, xs[0], ins[0])]
    return e.op("stablehlo." + _HLO[of], xs, outs[0], result_accuracy=asked)


@expand_rules.rule(accurate)
def _(x, *, of, mode: object, tolerance: object):
    return PLAIN[of].bind(x)
