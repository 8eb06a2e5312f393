"""Checks that values keep their meaning where forms of a carrier meet.

The places where forms meet (branches, carries, rows, pieces) coerce values, and a carrier's laws
say to which forms.  Programs reach few of these forms, so the checks coerce to all of them.

Invariant: target forms follow from the methods of the carrier alone, and a coerced value is judged
by the result of the transformation.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from plait.ext import Aval, Carrier, PlaitError
from plait.ext.ops.elementwise import add
from plait.ext.trace import Value, with_axis, without_axis
from plait.ext.values import as_value

from .report import Inapplicable, agree

Step = Callable[[Any], Any]


def check_coercions(
    api: Callable[[Step], Callable[..., Any]],
    truth: Callable[[Step], Callable[..., Any]],
    step: Step,
    constant: Step,
    args: Sequence[Any],
    tol: float,
) -> int:
    """Check that a value coerced to any form above its own gives the same results.

    `truth` is the transformation by other means, or `api` itself; `constant` returns a value of the
    type of its argument that no carrier has lifted.  Raises Inapplicable if the function is not
    given lifted values, or no form has another above it.
    """
    values: dict[str, Step] = {
        "the argument": lambda x: x,
        "a result": step,
        "a plain value": constant,
        "a sum with a plain value": lambda x: add(x, constant(x)),
    }
    found: dict[str, list[Any]] = {}

    def looking(x: Value) -> Any:
        carrier = _carrier(x)
        made = {name: as_value(f(x)) for name, f in values.items()}
        seen = {carrier.form_of(v): None for v in made.values()}
        for name, v in made.items():
            found[name] = list(dict.fromkeys(_above(carrier, v.aval, carrier.form_of(v), seen)))
        return x

    api(looking)(*args)
    made = 0
    for name, forms in found.items():
        for way, after in (("", lambda v: v), (", then given to the function", step)):
            f = values[name]
            want = truth(lambda x, f=f, after=after: after(f(x)))(*args) if forms else None
            for form in forms:
                got = api(lambda x, f=f, after=after, form=form: after(_in_form(x, f(x), form)))
                told = f"{name}, coerced to the form {form!r}{way}"
                made += agree(got(*args), want, tol, told)
    if not made:
        raise Inapplicable("no form that was seen can be coerced to another")
    return made


def _carrier(x: Value) -> Carrier:
    """Return the carrier that lifted a value, if one did."""
    by = getattr(x, "by", None)
    if not isinstance(by, Carrier):
        raise Inapplicable("the function is not given a value that a carrier lifted")
    return by


def _in_form(x: Value, v: Value, form: Any) -> Any:
    """Return `v` in a form of the carrier that lifted `x`."""
    carrier, v = _carrier(x), as_value(v)
    return carrier.lift(v.aval, form, carrier.to_form(v, form))


def _above(carrier: Carrier, aval: Aval, form: Any, seen: dict[Any, None]) -> Iterator[Any]:
    """Yield the forms that a value in `form` must be coercible to, by the laws of carriers."""
    asked: list[Callable[[], Any]] = []
    if type(carrier).whole is not Carrier.whole:
        asked.append(lambda: carrier.whole(aval))
    least = carrier.least(aval) if form is None else form  # None: any form takes a plain value
    asked.append(lambda: least)
    for other in seen:
        if other is not None and other != least:
            asked.append(
                lambda other=other: other if least is None else carrier.join(aval, least, other)
            )
    if form is not None:
        asked.append(lambda: carrier.entering(aval, form))
        for axis, size in enumerate(aval.shape):
            asked.append(lambda axis=axis: _stacked(carrier, aval, form, axis))
            if isinstance(size, int) and size and size % 2 == 0:
                asked.append(lambda axis=axis: _joined(carrier, aval, form, axis))
    for ask in asked:
        with suppress(PlaitError):  # a carrier may refuse to let forms meet, or to cut axes
            above = ask()
            if above is not None and above != form:
                yield above


def _stacked(carrier: Carrier, aval: Aval, form: Any, axis: int) -> Any:
    """Return the form of a value whose rows along an axis are rows of a value in `form`."""
    row = carrier.drop(form, axis, without_axis(aval, axis))
    return row if row is None else carrier.grow(row, axis, aval)


def _joined(carrier: Carrier, aval: Aval, form: Any, axis: int) -> Any:
    """Return the form of a value whose halves along an axis are halves of a value in `form`."""
    size = aval.shape[axis] // 2
    half = carrier.cut(form, axis, with_axis(without_axis(aval, axis), axis, size))
    return half if half is None else carrier.cut(half, axis, aval)
