"""Linearization: run a function once, and record a linear program between its tangents.

Invariant: the code that opens interpreters closes them.  A value from inside that is used later
raises an error for an escaped value.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plait.ext.errors import ArgumentError, OperandTypeError, ShapeError, names_of_arguments
from plait.ext.ir import Program
from plait.ext.ops.collective import varied
from plait.ext.ops.shape import fill, materialise_at_ground
from plait.ext.trace import (
    Carrier,
    Handle,
    Interpreter,
    Lending,
    Stage,
    Value,
    admitted,
    admitted_leaves,
    apart_from,
    current,
    name_of,
    opened,
)
from plait.ext.tree import TreeDef, flatten
from plait.ext.types import COMPLEX, FLOATING, Aval
from plait.ext.values import Literal

from .adable import adables
from .forward import JVP
from .linearized_functions import Derivative
from .split import Split
from .tangents import no_tangent, pair_of

_out = materialise_at_ground


class Linearized:
    """The outputs of a function, the linear program between tangents, and its residuals."""

    __slots__ = (
        "outs", "tree", "program", "residuals", "out_active", "in_tree", "avals", "aux", "name",
    )  # fmt: skip
    outs: list[Any]
    program: Program
    residuals: list[Any]
    out_active: list[bool]
    avals: list[Aval]

    def derivative(self) -> Derivative:
        """Return the static part."""
        outs = tuple([o.aval for o in self.outs])
        active = tuple(self.out_active)
        ins = tuple(self.avals)
        return Derivative(self.program, self.in_tree, ins, self.tree, outs, active)

    def gradient(self, holomorphic: bool) -> tuple[Any, ...]:
        """Return (value, auxiliary value, gradients in a tree like the arguments).

        Raises ShapeError and OperandTypeError unless the result is one number, and real or, if
        `holomorphic`, complex.
        """
        expect_scalar(self.outs, self.name, holomorphic)
        ones = [Literal(1, self.outs[0].aval)]
        g = self.in_tree.unflatten(self.derivative().pull(self.residuals, ones))
        return self.tree.unflatten(self.outs), self.aux, g


def linearized(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    has_aux: bool,
    does: str,
    of: Callable[..., Any],
) -> Linearized:
    r = Linearized()
    leaves, r.in_tree = flatten(adables.opened(primals))
    xs = admitted_leaves(leaves, primals, lambda: names_of_arguments(of))
    # In a branch that each device takes by itself, each device has cotangents of its own.
    if current().parent is not None:
        xs = [varied(x, apart_from(x)) for x in xs]
    r.avals, r.name, r.aux = [x.aval for x in xs], name_of(of), None
    levels = levels_over(current(), does, of)
    j, t = levels.jvp, levels.tangents
    try:
        with opened(j):
            duals = [j.dual(x, t.input(x.aval.tangent_type)) if x.aval.varies else x for x in xs]
            out = f(*r.in_tree.unflatten(duals))
            if has_aux:
                out, r.aux = pair_of(out, does)
            outs, r.tree = flatten(adables.opened(out))
            outs = [admitted(o) for o in outs]
        return finished(r, levels, outs, has_aux)
    finally:
        t.abandon()


class Levels(NamedTuple):
    """The interpreters of a linearization: JVP over Split over the parent, and the stage that
    records tangents."""

    jvp: JVP
    split: Split
    tangents: Stage


def levels_over(parent: Carrier | Interpreter, does: str, of: Callable[..., Any]) -> Levels:
    t = Stage(parent, does, of)
    t.settles = False
    s = Split(parent, t, of)
    j = JVP(s, of=of)
    j.does = does
    return Levels(j, s, t)


def finished(r: Linearized, levels: Levels, outs: list[Any], has_aux: bool) -> Linearized:
    """Fill in the fields that are known once the function has returned `outs`."""
    j, s, t = levels
    s.closed = True
    halves = [j.split(o) for o in outs]
    if has_aux:
        r.aux = without_tangents(j, r.aux)
    for _, p in halves:
        if s.unknown(p[0]):
            raise ArgumentError(
                f"{j.does}: a result of {r.name} is linear in what is differentiated, and has "
                "no value here",
                fix="return a value computed from the arguments",
            )
    r.outs = [_out(p[0]) for _, p in halves]
    r.out_active = [form is not None for form, _ in halves]
    dots = [p[1] for form, p in halves if form is not None]
    r.program, r.residuals = t.close(dots, r.name, prune=True)
    return r


def pushed(j: JVP, outs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return (values, tangents) of results as users get them; float0 for integers and booleans."""
    halves = [j.split(o) for o in outs]
    return [_out(p[0]) for _, p in halves], [_dot(form, p) for form, p in halves]


def _dot(form: str | None, parts: tuple) -> Any:
    x = parts[0]
    if not x.aval.varies:
        return no_tangent(x.aval)
    return _out(parts[1]) if form is not None else fill(0, x.aval.tangent_type)


def without_tangents(j: JVP, aux: Value | tuple[Any, ...] | None) -> Any:
    """Return the auxiliary result without its derivative."""
    leaves, tree = flatten(adables.opened(aux))
    return tree.unflatten([_out(j.split(x)[1][0]) if isinstance(x, Value) else x for x in leaves])


def expect_scalar(outs: list[Any], name: str, holomorphic: bool) -> None:
    """Raise unless the result is one scalar that has a gradient."""
    if not outs:
        raise ShapeError(
            f"grad is for functions with one scalar result, and {name} returned no array, but None "
            "or an empty tree",
            fix="return the loss: a function without `return` returns None",
        )
    if len(outs) != 1:
        raise ShapeError(
            f"grad is for functions with one scalar result, and {name} returned "
            f"{len(outs)} arrays, {[o.aval for o in outs]}",
            fix="return the loss alone, or pass has_aux=True and return (loss, the rest)",
        )
    if outs[0].aval.shape:
        raise ShapeError(
            f"grad is for functions with one scalar result, and {name} returned "
            f"{[o.aval for o in outs]}",
            fix="sum or average the result, or use jacrev or vjp",
        )
    a = outs[0].aval
    wanted = COMPLEX if holomorphic else FLOATING
    if a.category != wanted:
        kind = "complex" if holomorphic else "real"
        raise OperandTypeError(
            f"grad is of functions with a {kind} result, and {name} returned {a!r}",
            fix="pass holomorphic=True for complex functions of complex numbers"
            if a.category == COMPLEX
            else "compute with floating dtypes",
        )


# ---- references among the arguments --------------------------------------------------------------


def linearized_at_contents(
    fun: Callable[..., Any],
    leaves: Sequence[Any],
    tree: TreeDef,
    has_aux: bool,
    does: str,
) -> tuple[Any, Derivative, list[Any], Any]:
    """Return (result, derivative, residuals, auxiliary value) of a function that has references
    among its arguments, and write its writes into these.

    It is differentiated by their contents before it runs.  The function is lent references to
    these values, as vmap lends references to parts.  The last contents are results with cotangents
    of zero.  So no reference is an operand of a derivative.
    """

    def function(*given: Any) -> Any:
        args, parts = lending.lent(given)
        out = fun(*args)
        out, aux = pair_of(out, does) if has_aux else (out, None)
        ends = lending.returned(parts, (out, aux))
        return ((out, ends), aux) if has_aux else (out, ends)

    which = [i for i, x in enumerate(leaves) if isinstance(x, Handle)]
    lending = Lending(leaves, tree, which)
    with lending:
        r = linearized(function, lending.plain, has_aux, does, fun)
    out, ends = r.tree.unflatten(r.outs)
    lending.restore(ends)
    of, n = r.derivative(), len(r.outs) - len(ends)
    derivative = of._replace(
        program=_first_results(of.program, sum(of.active[:n])),
        out_tree=flatten(out)[1],
        out_avals=of.out_avals[:n],
        active=of.active[:n],
        references=tuple([i for i in which if of.in_avals[i].varies]),
    )
    return out, derivative, r.residuals, r.aux


def _first_results(program: Program, n: int) -> Program:
    """Return a program that gives the first results only; its inputs stay."""
    return Program(program.inputs, program.eqns, program.outputs[:n], program.name, program.consts)
