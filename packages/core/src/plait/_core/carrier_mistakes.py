"""Mistakes of authors of carriers, found where core uses what a method returned.

An error names the carrier, the method or rule, and the line that defines it.  Users of a
transformation did not write these, so their lines would mislead.

Invariant: nothing here costs time where operations are applied at once, unless checks are on:
values are checked where programs are lifted, and exceptions where they are raised.
"""

import dis
from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

from .._base.errors import CarrierError, ConcretizationError, MissingRule, PlaitError
from .._base.source import code_of, hidden
from .._plugins.rules import origin
from .._types.avals import Aval
from .higher_order import Part
from .interpreter import Value

if TYPE_CHECKING:
    from .carrier import Carrier
    from .primitive import Primitive

_RAISE = dis.opmap["RAISE_VARARGS"]


def blamed(carrier: "Carrier", method: str, what: str, fix: str) -> CarrierError:
    """Return the error for a method of a carrier: `what` follows the method's name."""
    kind = type(carrier)
    at = code_of(getattr(kind, method, None))
    if at is not None and hidden(at.co_filename):  # the default, which the author did not replace
        at = code_of(kind.run)
    line = f"{at.co_filename}:{at.co_firstlineno}" if at is not None else kind.__module__
    return CarrierError(f"{kind.__module__}.{kind.__qualname__}.{method} {what}", line, fix)


# ---- what methods return ---------------------------------------------------------------------


def parts_of(carrier: "Carrier", aval: Aval, form: object) -> tuple[Part, ...]:
    """Return the components of an `aval` in `form` as the carrier describes them."""
    avals = carrier.part_avals(aval, form)
    if not _are(avals, Aval):
        raise blamed(
            carrier, "part_avals", f"must return a tuple of types, and returned {avals!r}",
            "return one type for each component",
        )  # fmt: skip
    axes = carrier.part_axes(aval, form)
    if len(avals) != len(axes):
        raise blamed(
            carrier, "part_axes",
            f"gives the axes of {len(axes)} components of {aval!r} in form {form!r}, and "
            f"part_avals the types of {len(avals)}",
            "return a tuple for each component",
        )  # fmt: skip
    for a, at in zip(avals, axes, strict=True):
        fits, n = len(at) == aval.ndim, a.ndim
        for i in at:
            if i is not None and not 0 <= i < n:
                fits = False
        if not fits:
            raise blamed(
                carrier, "part_axes", f"returned {at!r} for the component {a!r} of {aval!r}",
                "give, for each axis of the value, its position in the component, or None",
            )  # fmt: skip
    return tuple([Part(a, tuple(at)) for a, at in zip(avals, axes, strict=True)])


def _are(xs: tuple[Any, ...], kind: type) -> bool:
    """Return whether these are a tuple or list of instances of a class.

    A loop, and no comprehension, since every value that is lifted through a loop passes here.
    """
    if not isinstance(xs, tuple | list):
        return False
    for x in xs:
        if not isinstance(x, kind):
            return False
    return True


def check_parts(
    carrier: Any, method: str, aval: Aval, form: object, parts: tuple[Any, ...]
) -> None:
    """Raise CarrierError unless components have the types that the carrier gives for the form.

    Args:
      carrier: the carrier.
      method: the method that returned them, or "lift" if they are those of a lifted value.
      aval: the type of the value.
      form: the form, which may be None.
      parts: the components.
    """
    want = (aval,) if form is None else tuple([p.aval for p in carrier.parts_of(aval, form)])
    what = f"{aval!r} in form {form!r}"
    if not _are(parts, Value):
        raise blamed(
            carrier, method if method != "lift" else "run",
            f"must give a tuple of values as components of {what}, and gave {parts!r}",
            "convert with plait.ext.as_value",
        )  # fmt: skip
    have = tuple([p.aval for p in parts])
    fits = len(have) == len(want)
    for h, w in zip(have, want):
        if h is not w and not h.same_type(w):
            fits = False
    if fits:
        return
    if method == "lift":
        raise blamed(
            carrier, "part_avals",
            f"gives the types {want} for {what}, and `lift` was given {have}",
            "mend part_avals, or the components that are lifted",
        )  # fmt: skip
    raise blamed(
        carrier, method, f"returned components of the types {have} for {what}, where part_avals "
        f"gives {want}", "return components of these types",
    )  # fmt: skip


def unheld(carrier: Any, rule: str, aval: Aval, form: Any, wanted: Any) -> MissingRule:
    """Return the error for a result of a custom rule that its function's form cannot take."""
    own = "as a plain value" if form is None else f"in the form {form!r}"
    return MissingRule(
        f"{carrier.does}: the rule {rule} returns {aval!r} {own}, and its function in the form "
        f"{wanted!r}, which cannot take it",
        fix="let the rule return it in the form that the function gives, or call the function "
        f"outside of {carrier.does}",
    )


def check_lifted(carrier: Any, x: Any, aval: Aval, prim: Any = None) -> None:
    """Raise CarrierError unless a value that the carrier may have lifted, the result of `prim` if
    that is given, has the type `aval`, and components of its form."""
    if not x.aval.same_type(aval):
        raise blamed(
            carrier, "run",
            ("" if prim is None else f"by the {carrier.rules.name!r} rule of {prim} ")
            + f"returned a value of type {x.aval!r} for {aval!r}",
            "lift a value with the type of the operation's result",
        )  # fmt: skip
    form, parts = carrier.split(x)
    if form is not None:
        check_form(carrier, form)
        check_parts(carrier, "lift", x.aval, form, parts)


def check_form(carrier: "Carrier", form: object) -> None:
    """Raise CarrierError for a form that cannot be part of a cache key."""
    try:
        hash(form)
    except TypeError:
        raise blamed(
            carrier, "run", f"lifted a value in the form {form!r}, which is not hashable",
            "use tuples in place of lists, and frozenset in place of set",
        ) from None  # fmt: skip


def joined(carrier: Any, aval: Aval, f: Any, g: Any) -> Any:
    """Return the join of two forms of one type that differ.

    Raises CarrierError if it is not a form above both: the forms of loops would then depend on the
    order in which values meet, or grow without end.
    """
    if f == g:
        return f
    new = carrier.join(aval, f, g)
    if new is None:
        raise blamed(
            carrier, "join", f"returned None for {f!r} and {g!r}, forms of {aval!r}",
            "return the least form that both can be coerced to",
        )  # fmt: skip
    check_form(carrier, new)
    for old in (f, g):
        again = new if new == old else carrier.join(aval, new, old)
        if again != new:
            raise blamed(
                carrier, "join",
                f"gives {new!r} for {f!r} and {g!r}, forms of {aval!r}, and {again!r} for {new!r} "
                f"and {old!r}, which it should be above",
                "return the least form above both: joining either of them again changes nothing",
            )  # fmt: skip
    return new


def unsettled(carrier: Any, prim: Any, forms: Sequence[Any]) -> CarrierError:
    """Return the error for forms that still change after many rounds through the programs of an
    operation."""
    grown = ", ".join(f"slot {s}: {f!r}" for s, f in enumerate(forms) if f is not None)
    widens = not hidden(getattr(code_of(type(carrier).widen), "co_filename", ""))
    return blamed(
        carrier, "widen" if widens else "join",
        f"does not settle the forms of {prim}: {grown}",
        f"give `join` finite height, or define {type(carrier).__name__}.widen so that it ends",
    )  # fmt: skip


def check_result(
    carrier: "Carrier", prim: "Primitive", out: Value | Sequence[Value] | None
) -> None:
    """Raise CarrierError unless `run` returned a value, or a list of them if `prim` has many."""
    if prim.many:
        if isinstance(out, list | tuple):
            return
    elif isinstance(out, Value):
        return
    want = "a list of values" if prim.many else "one value"
    raise blamed(
        carrier, "run", f"must return {want} for {prim}, and returned {out!r}",
        "return self.lift(aval, form, parts) for each result",
    )  # fmt: skip


# ---- what methods raise ----------------------------------------------------------------------


def reported(
    carrier: "Carrier", prim: "Primitive", rule: Callable[..., Any], error: Exception
) -> Exception:
    """Return the error to raise for an exception of `run` or a rule.

    An exception that Python raised in a line of the carrier or of the rule is the author's mistake.
    So is a request for the elements of a traced value there.  Others are returned as they are, also
    those that the author raises.
    """
    own = [code_of(type(carrier).run), code_of(rule)]
    frames = _frames(error.__traceback__)
    if isinstance(error, ConcretizationError):
        outside = [f for f in frames if not hidden(f[0].co_filename)]
        at = outside[-1] if outside else None
    else:
        at = frames[-1] if frames else None
        if isinstance(error, PlaitError) or (at and at[0].co_code[at[1]] == _RAISE):
            return error
    if at is None or at[0] not in own or hidden(at[0].co_filename):
        return error
    of_rule = at[0] is own[1]
    who = f"the {carrier.rules.name!r} rule" if of_rule else "the method run"
    kind = type(carrier)
    told = str(error).partition("\n")[0]
    return CarrierError(
        f"{who} of the carrier {kind.__module__}.{kind.__qualname__} failed for {prim}: "
        f"{type(error).__name__}: {told}",
        f"{at[0].co_filename}:{at[2]}",
        f"mend it, or the rule, {origin(rule)}, which returns: {carrier.rules.__doc__}",
    )


def _frames(at: TracebackType | None) -> Sequence[tuple[CodeType, int, int]]:
    """Return the code, the instruction and the line of each frame of a traceback."""
    found = []
    while at is not None:
        found.append((at.tb_frame.f_code, at.tb_lasti, at.tb_lineno))
        at = at.tb_next
    return found
