"""Linearized functions, pullbacks and transposed functions.

`linearize` and `vjp` return the first two beside the result, `linear_transpose` returns the third.
They are functions, and trees whose leaves are the residuals.  So they can be passed into and out
of jitted functions and loops, and can be residuals of a rule.

Invariant: such a function holds residuals and a program, but no argument and no result of the
function that was differentiated.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import plait
from plait.ext.errors import ArgumentError, MissingRule, OperandTypeError, border
from plait.ext.ir import Program, derived, evaluate
from plait.ext.ops.shape import convert, fill, materialise_at_ground
from plait.ext.trace import GROUND, Value, as_operand, current, is_recorded, is_unplaced
from plait.ext.tree import TreeDef, register
from plait.ext.types import Aval

from .destinations import DontWant, expect_places, leave, ways
from .forward import ZERO
from .tangents import given_cotangent, matching, no_tangent, tangent, whole
from .transpose import Linear, backward, solid_ct

__all__ = ["Derivative", "Pullback", "Pushforward", "Transposed"]


class Derivative(NamedTuple):
    """The static part of a derivative at a point.

    program: residuals, tangents of inexact arguments -> tangents of the `active` results.
    in_tree, in_avals: structure and types of the arguments; out_tree, out_avals: of the results.
    references: the numbers of arguments that are the contents of references.
    """

    program: Program
    in_tree: TreeDef
    in_avals: tuple[Aval, ...]
    out_tree: TreeDef
    out_avals: tuple[Aval, ...]
    active: tuple[bool, ...]
    references: tuple[int, ...] = ()

    def push(self, residuals: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
        """Return tangents of the results; float0 for integer and boolean ones."""
        moving = [t for t, a in zip(ts, self.in_avals, strict=True) if a.varies]
        outs = iter(evaluate(self.program, [*residuals, *moving]))
        return [
            no_tangent(a)
            if not a.varies
            else materialise_at_ground(next(outs))
            if active
            else fill(0, a.tangent_type)
            for a, active in zip(self.out_avals, self.active, strict=True)
        ]

    def pull(
        self, residuals: Sequence[Any], cts: Sequence[Any], wanted: Sequence[bool] | None = None
    ) -> list[Any]:
        """Return cotangents of the arguments; float0 for integer and boolean ones, and zeros for
        those that are not wanted."""
        moving = [a.tangent_type for a in self.in_avals if a.varies]
        active = [c for c, a in zip(cts, self.active, strict=True) if a]
        if wanted is not None:
            wanted = [w for w, a in zip(wanted, self.in_avals, strict=True) if a.varies]
        got = iter(self.back(residuals, active, moving, wanted))
        return [
            cotangent(next(got), a.tangent_type) if a.varies else no_tangent(a)
            for a in self.in_avals
        ]

    def back(
        self,
        residuals: Sequence[Any],
        cts: Sequence[Any],
        avals: Sequence[Aval],
        wanted: Sequence[bool] | None = None,
    ) -> list[Any]:
        """Return cotangents of operands of these types, not yet converted for the user."""
        args, n = [*residuals, *map(Linear, avals)], len(residuals)
        chosen = None if wanted is None else [False] * n + list(wanted)
        return backward(self.program, args, cts, wanted=chosen)[n:]


def cotangent(ct: Value | None, aval: Aval) -> Any:
    """Return a cotangent as users see it; None becomes zeros.  It is as weakly typed as `aval`."""
    if ct is None:
        return fill(0, aval)
    if ct.aval.weak_type != aval.weak_type:
        ct = convert(ct, aval.dtype, aval.weak_type)
    return materialise_at_ground(ct)


def _varying(where: str, given: Aval, want: Aval) -> OperandTypeError:
    """Return the error for a cotangent that differs between devices where the result does not.

    It is an error because the user has not asked for the sum over devices.
    """
    axes = sorted(given.vma - want.vma)
    names = axes[0] if len(axes) == 1 else tuple(axes)
    return OperandTypeError(
        f"{where} differs from device to device, along {names!r}, and the result, {want!r}, "
        "does not",
        fix=f"if each has a part of it, add them up: plait.lax.psum(ct, {names!r}); if each device "
        f"has its own result, let the arguments vary: plait.lax.pcast(x, {names!r}, to='varying')",
    )


_SIGHTS = 8
"""Calls of one linear program before it is compiled; compiling takes as long as hundreds of
calls."""


class _Calls:
    """The number of runs of a linear program outside of transformations, and its compiled form."""

    __slots__ = ("count", "compiled")

    def __init__(self):
        self.count = 0
        self.compiled: Callable[..., list] | None = None


class _At:
    """A derivative with its residuals.

    Attributes:
      of: the static part.
      residuals: the values that are known at the point, a list.
    """

    def __init__(self, of: Derivative, residuals: Sequence[Any]):
        self.of, self.residuals = of, list(residuals)

    def _through(self, run: Callable[..., list], given: list, avals: Sequence[Aval]) -> list[Any]:
        """Return `run(residuals, given)`, where `run` is `push` or `pull` of the derivative.

        The results are like `avals`.  Outside of transformations a compiled program replaces `run`
        after several calls.
        """
        if current() is not GROUND or not is_recorded(run, "linear"):
            return run(self.residuals, given)
        if not all(a.varies for a in avals) or not all(map(is_unplaced, self.residuals)):
            return run(self.residuals, given)
        of = self.of
        key = "calls", run.__name__, of.in_avals, of.out_avals, of.active
        calls = derived(of.program, key, _Calls)
        calls.count += 1
        if calls.count <= _SIGHTS or not all(x is None or is_unplaced(x) for x in given):
            return run(self.residuals, given)
        whole = calls.compiled = calls.compiled or plait.jit(run)
        given = [x if x is None else as_operand(x) for x in given]
        return whole([as_operand(x) for x in self.residuals], given)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {self.of.program.name}>"

    def _cotangents(
        self, ct: object, where: str, what: str, check: Callable[..., Any]
    ) -> list[Any]:
        """Return the leaves of a cotangent like the result; None for those that are zero."""
        of = self.of
        given = matching(of.out_tree.unflatten(of.out_avals), ct, of.out_tree, where)
        flat = [check(c, a, what) for c, a in zip(given, of.out_avals)]
        for c, a in zip(flat, of.out_avals):
            if c is not ZERO and not c.aval.vma <= a.vma:
                raise _varying(where, c.aval, a)
        return [None if c is ZERO else c for c in flat]


class Pushforward(_At):
    """A function from tangents of the arguments to tangents of the result."""

    @border
    def __call__(self, *tangents: object) -> Any:
        of = self.of
        like = of.in_tree.unflatten(of.in_avals)
        given = matching(like, tangents, of.in_tree, "the tangents of a linearized function")
        what = "a linearized function was given a tangent of another type"
        ts = [tangent(t, a, what) for t, a in zip(given, of.in_avals)]
        return of.out_tree.unflatten(self._through(of.push, ts, of.out_avals))


class Pullback(_At):
    """A function from cotangents of the result to a tuple of cotangents of the arguments."""

    def __call__(self, *cts: object) -> Any:
        of = self.of
        flat = self._given(cts)
        if of.references:
            expect_places([], of.references)
        return of.in_tree.unflatten(self._through(of.pull, flat, of.in_avals))

    def _given(self, cts: tuple[Any, ...]) -> list[Any]:
        """Return the leaves of the one cotangent that a call was given."""
        if len(cts) != 1:
            raise ArgumentError(
                f"the pullback of {self.of.program.name} takes one cotangent, a tree like the "
                f"result, and was given {len(cts)}",
                fix="put the cotangents of several results into one tuple",
            )
        what = "a pullback was given a cotangent of another type"
        return self._cotangents(*cts, "the cotangent given to a pullback", what, given_cotangent)

    @border
    def with_refs(self, *entries: object) -> Callable[..., Any]:
        """Return this pullback with a place for the cotangent of each argument.

        Args:
          entries: one for each argument, or a tree like the argument. A reference: the cotangent is
            added to its contents, and `plait.ad.GradRef()` is returned in its place.
            `plait.ad.GradValue()`: the cotangent is returned. `plait.ad.DontWant()`: it is not
            computed, and `plait.ad.DidntWant()` is returned.

        So the gradients of several batches add up in one array, which a loop writes in place. An
        argument that was a reference needs a reference, or `plait.ad.DontWant()`.

        Raises TreeMismatch if the entries do not fit the arguments, ArgumentError for another
        entry, ShapeError or OperandTypeError for a reference that is not like its argument.

        >>> import plait
        >>> total = plait.new_ref(0.0)
        >>> for x in (1.0, 2.0):
        ...     _, pullback = plait.vjp(lambda w: w * x, 5.0)
        ...     _ = pullback.with_refs(total)(1.0)
        >>> total
        Ref(3., dtype=float32, weak_type=True)
        """
        of = self.of
        where = ways(entries, of.in_tree, of.in_avals)
        expect_places(where, of.references)
        wanted = [not isinstance(way, DontWant) for way in where]

        @border
        def pull(*cts: object) -> Any:
            got = of.pull(self.residuals, self._given(cts), wanted)
            return of.in_tree.unflatten(leave(got, where))

        return pull


class Transposed(_At):
    """A function from cotangents of a linear function's result to a tuple of its arguments'."""

    @border
    def __call__(self, ct: Any) -> tuple[Any, ...]:
        try:
            return self._transposed(ct)
        except MissingRule as error:
            error.fix = (
                "linear_transpose is for linear functions; plait.vjp(f, *args)[1] transposes the "
                f"derivative of any\nfor an operation that is linear: {error.fix}"
            )
            raise

    def _transposed(self, ct: Any) -> tuple:
        of, where = self.of, "the cotangent of a transposed function"
        what = "linear_transpose was given a cotangent of another type"
        if not of.in_avals or of.in_avals[0].varies:
            cts = self._cotangents(ct, where, what, tangent)
            return of.in_tree.unflatten(of.pull(self.residuals, cts))
        # Integers have no tangents; their cotangents here are integers.
        cts = self._cotangents(ct, where, what, whole)
        got = of.back(self.residuals, cts, of.in_avals)
        return of.in_tree.unflatten(
            [materialise_at_ground(solid_ct(c, a)) for c, a in zip(got, of.in_avals)]
        )


# ---- as trees ------------------------------------------------------------------------------


def _opened(program: Program) -> Program:
    """Return the program with its constants as its first inputs."""
    own = [v for v, _ in program.consts]
    inputs = [*own, *program.inputs]
    return Program(inputs, program.eqns, program.outputs, program.name)


def _parts(f: "Pullback | Pushforward | Transposed") -> tuple[list, Derivative]:
    of: Derivative = f.of
    program = of.program
    if not program.consts:
        return list(f.residuals), of
    arrays = [x for _, x in program.consts]
    opened = derived(program, "opened", lambda: _opened(program))
    return [*arrays, *f.residuals], of._replace(program=opened)


for _class in (Pushforward, Pullback, Transposed):
    register(_class, _parts, _class)
