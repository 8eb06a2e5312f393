"""custom_linear_solve: linear equations solved by any algorithm, differentiated as equations.

A x = b implies A x' = b' - A' x.  The transposed equations map the cotangent of x to that of b.
The solver's algorithm does not matter.

Invariant: one operation carries the functions A, A^T and their solvers as programs, and the values
that these close over as operands.  Its transpose is the same operation with the sides exchanged.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import ArgumentError, MissingRule, OperandTypeError, TreeMismatch, border
from plait.ext.ir import Primitive, Program, evaluate
from plait.ext.lower import IrValue
from plait.ext.observers import runs_rules
from plait.ext.ops.control_flow import expect
from plait.ext.ops.elementwise import neg, sub
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import lower_rules
from plait.ext.trace import Slots, Value, Wiring, current, name_of, opened, trace, width, wraps
from plait.ext.tree import TreeDef, difference, flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from ..forward import JVP, ZERO, instantiate, jvp_rules
from ..split import split_rules
from ..tangents import expect_function
from ..transpose import is_linear, solid_ct, transpose_program, transpose_rules

_ROLES = ("matvec", "vecmat", "solve", "transpose_solve")


class _Equations(Wiring):
    """Operands: constants of each program, then b.  Results: x, then the solver's other results."""

    def slots(self, params: dict[str, Any]) -> Slots:
        counts, n = params["consts"], len(params["matvec"].outputs)
        total = sum(counts)
        right, left = range(total, total + n), range(total + n, total + 2 * n)
        count = total + 2 * n
        bodies, at, extras = [], 0, []
        for role, c in zip(_ROLES, counts, strict=True):
            p, consts = params[role], range(at, at + c)
            at += c
            if p is None:
                continue
            ins, outs = (left, right) if role in ("matvec", "transpose_solve") else (right, left)
            more = range(count, count + len(p.outputs) - n)
            count += len(more)
            extras.append(more if role == "solve" else ())
            bodies.append((p, (*consts, *ins), (*outs, *more)))
        outputs = (*left, *(s for more in extras for s in more))
        return Slots(range(total + n), outputs, bodies, count)

    def rebuild(
        self,
        params,
        programs,
        parts: list[tuple[Any, ...]],
        operands: list[Value],
        extra: list[Any],
    ):
        made, new, at, start, out = iter(programs), {}, 0, 0, []
        counts = []
        for role, c in zip(_ROLES, params["consts"], strict=True):
            new[role] = None if params[role] is None else next(made)
            k = width(parts[at : at + c])
            front = [] if new[role] is None else extra
            out += [*front, *operands[start : start + k]]
            counts.append(k + len(front))
            at, start = at + c, start + k
        return [*out, *operands[start:]], {**new, "consts": tuple(counts)}


def _rule(
    *xs: Aval,
    matvec: Program,
    vecmat: Program | None,
    solve: Program,
    transpose_solve: Program | None,
    consts: tuple,
) -> list[Aval]:
    """Return x with matvec(x) = b, as `solve` finds it, and the solver's other results."""
    total, n = sum(consts), len(matvec.outputs)
    b = xs[total:]
    expect("the matvec of linear_solve", b, matvec.out_avals)
    expect("the solution of linear_solve", matvec.in_avals[consts[0] :], solve.out_avals[:n])
    return solve.out_avals


linear_solve = Primitive("autodiff.linear_solve", _rule, many=True, higher=_Equations())


def _mine(role: str, xs: Sequence[Any], consts: tuple) -> list:
    """Return the operands that are constants of one program."""
    i = _ROLES.index(role)
    at = sum(consts[:i])
    return [*xs[at : at + consts[i]]]


@lower_rules.rule(linear_solve)
def _(e, xs: list[IrValue], ins: list[Aval], outs: list[Aval], solve, consts, **others: object):
    return e.call(solve, [*_mine("solve", xs, consts), *xs[sum(consts) :]])


@runs_rules.rule(linear_solve)
def _(passage, args, params):
    """Observe the solver.

    Its further results are beside the solution.  The derivative of the solution is that of the
    equations, which leave them out: where they are differentiated, the solver computes them
    once more on its own.
    """
    inner, counts = passage.once(params["solve"]), params["consts"]
    p, w, at = inner.program, inner.width, sum(counts[:2])
    outs = [*p.outputs[w:], *([] if passage.smooth else p.outputs[:w])]
    new = {
        **passage.bare(params),
        "solve": Program(p.inputs, p.eqns, outs, p.name, p.consts),
        "consts": (*counts[:2], counts[2] + len(inner.operands), counts[3]),
    }
    ys = linear_solve.bind(*args[:at], *inner.operands, *args[at:], **new)
    own = len(p.outputs) - w
    given = [*inner.operands, *_mine("solve", args, counts), *args[sum(counts) :]]
    found = evaluate(p, given)[:w] if passage.smooth else ys[own:]
    return passage.taken(inner, [*found, *ys[:own]])


@jvp_rules.rule(linear_solve)
def _(jvp, args: Sequence[Value], params):
    matvec, counts = params["matvec"], params["consts"]
    xs, ts = jvp.halves(args)
    total, n = sum(counts), len(matvec.outputs)
    outs = linear_solve.bind(*xs, **params)
    # A' x is the derivative of the product in the constants of A, at the solution x.
    inner = JVP(current())
    with opened(inner):
        duals = inner.duals(_mine("matvec", xs, counts), _mine("matvec", ts, counts))
        product = evaluate(matvec, [*duals, *outs[:n]])
    rest = [inner.halves([p])[1][0] for p in product]
    right = []
    for t, r in zip(ts[total:], rest, strict=True):
        right.append(t if r is ZERO else neg.bind(r) if t is ZERO else sub.bind(t, r))
    if all(t is ZERO for t in right):
        return outs
    right = [instantiate(t, b) for t, b in zip(right, xs[total:])]
    dots = linear_solve.bind(*xs[:total], *right, **params)[:n]
    return jvp.duals(outs, [*dots, *[ZERO] * (len(outs) - n)])


@split_rules.rule(linear_solve)
def _(split, args, params):
    """Record it undivided: a solution needs its matrix and its right-hand side together."""
    return split.stage.apply(linear_solve, args, params)


@transpose_rules.rule(linear_solve)
def _(cts, *args, matvec, vecmat, solve, transpose_solve, consts):
    total, n = sum(consts), len(matvec.outputs)
    if any(map(is_linear, args[:total])):
        raise MissingRule(
            "custom_linear_solve is transposed in what its matrix or solver depends on",
            fix="differentiate with jvp, vjp or grad, which make linear equations of it",
        )
    if vecmat is None or transpose_solve is None:
        raise ArgumentError(
            "custom_linear_solve has no transpose_solve, which reverse mode needs",
            fix="pass transpose_solve=, or symmetric=True if the matrix is its own transpose",
        )
    given = [solid_ct(c, a) for c, a in zip(cts[:n], solve.out_avals)]
    mc, vc, sc, tc = (_mine(role, args, consts) for role in _ROLES)
    got = linear_solve.bind(
        *vc, *mc, *tc, *sc, *given,
        matvec=vecmat, vecmat=matvec, solve=transpose_solve, transpose_solve=solve,
        consts=tuple(map(len, (vc, mc, tc, sc))),
    )  # fmt: skip
    return [*[None] * total, *got[:n]]


# ---- the user's interface ------------------------------------------------------------------


@border
def custom_linear_solve(
    matvec: Callable,
    b: object,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` by `solve`, and differentiate x by the equations themselves.

    Args:
      matvec: a linear function of trees like `b`; it may close over anything.
      b: the right-hand side, a tree of arrays.
      solve: `solve(matvec, b) -> x`; it is not differentiated.
      transpose_solve: `transpose_solve(vecmat, b) -> x` for the transposed function; reverse mode
        needs it.
      symmetric: whether `matvec` is its own transpose, so that `solve` serves both.
      has_aux: the solvers return (x, aux), and so does this function; aux is constant.

    Raises TreeMismatch or TypeRule if `matvec` or a solver returns something unlike `b`.

    >>> import plait
    >>> solve = lambda matvec, b: b / 4
    >>> plait.grad(lambda b: plait.lax.custom_linear_solve(lambda x: 4 * x, b, solve, solve))(2.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    expect_function(matvec, "matvec of custom_linear_solve")
    expect_function(solve, "solve of custom_linear_solve")
    if transpose_solve is not None:
        expect_function(transpose_solve, "transpose_solve of custom_linear_solve")
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = flatten(b)
    values = [as_value(x) for x in leaves]
    like = tree.unflatten(values)

    @wraps(matvec)
    def product(x: Value | dict[str, Any]) -> Any:
        return _like("matvec", matvec(x), tree, values)

    def solving(find: Callable, by: Callable) -> Callable[[Any], tuple]:
        @wraps(find)
        def solved(y: Value | dict[str, Any]) -> tuple:
            out = find(by, y)
            x, aux = _two(out) if has_aux else (out, None)
            return _like(name_of(find, "solve"), x, tree, values), aux

        return solved

    forward = trace(product, (like,), {}, "custom_linear_solve")
    solver = trace(solving(solve, product), (like,), {}, "custom_linear_solve")
    parts = {
        "matvec": (forward.program, forward.captured),
        "vecmat": (None, []),
        "solve": (solver.program, solver.captured),
        "transpose_solve": (None, []),
    }
    if transpose_solve is not None:
        back = (forward.program, forward.captured) if symmetric else _transposed(forward)
        program, captured = back

        def vecmat(y: Value) -> Any:
            return tree.unflatten(evaluate(program, [*captured, *flatten(y)[0]]))

        other = trace(solving(transpose_solve, vecmat), (like,), {}, "transpose_solve")
        parts["vecmat"] = back
        parts["transpose_solve"] = other.program, other.captured
    outs = linear_solve.bind(
        *(c for role in _ROLES for c in parts[role][1]),
        *values,
        **{role: parts[role][0] for role in _ROLES},
        consts=tuple([len(parts[role][1]) for role in _ROLES]),
    )
    x, aux = solver.tree.unflatten([materialise_at_ground(o) for o in outs])
    return (x, aux) if has_aux else x


def _transposed(forward: Any) -> tuple[Program, list]:
    """Return the transposed function, with the values that it closes over."""
    p, k = forward.program, len(forward.captured)
    linear = tuple([i >= k for i in range(len(p.inputs))])
    return transpose_program(p, linear, (True,) * len(p.outputs), full=True)[0], forward.captured


def _two(out: tuple[dict[str, Any] | int, ...]) -> tuple:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise ArgumentError(
            "custom_linear_solve with has_aux=True needs solvers that return a pair (x, aux)",
            fix="return (x, aux)",
        )
    return tuple(out)


def _like(who: str, x: object, tree: TreeDef, values: Sequence[Any]) -> Any:
    """Return a result after checking that it has the structure, shapes and dtypes of `b`."""
    leaves, kind = flatten(x)
    if kind != tree:
        a, b = (t.unflatten([0] * t.num_leaves) for t in (tree, kind))
        raise TreeMismatch(
            f"custom_linear_solve: {who} returns another structure than b has: {difference(a, b)}",
            fix="the equations have as many unknowns as right-hand sides, in one structure",
        )
    for got, want in zip(map(as_value, leaves), values):
        if not got.aval.same_type(want.aval):
            raise OperandTypeError(
                f"custom_linear_solve: {who} returns {got.aval!r} where b is {want.aval!r}",
                fix="return what has the shapes and dtypes of b",
            )
    return x
