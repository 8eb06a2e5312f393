"""custom_root and implicit_diff: solutions of f(x, theta) = 0, by the implicit function theorem.

Invariant: the solver is never differentiated; x' solves f_x x' = -f_theta theta'.  The rule is
differentiable itself, so it serves reverse mode and every order.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait import map_axes
from plait.ext import ops  # imports its linear algebra only when a system is solved
from plait.ext.errors import ArgumentError, OperandTypeError, TreeMismatch, border
from plait.ext.ir import Program, evaluate
from plait.ext.ops.elementwise import neg
from plait.ext.ops.shape import concatenate, reshape
from plait.ext.trace import Value, trace, tracers_of, wraps
from plait.ext.tree import difference, flatten, in_words
from plait.ext.values import as_value

from ..api import jvp, linearize
from ..jacobian import basis
from ..tangents import expect_function
from .jvp import custom_jvp


@border
def custom_root(
    f: Callable[..., Any],
    initial_guess: object,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of `f` by `solve`, and differentiate it implicitly.

    Args:
      f: takes and returns trees like `initial_guess`; it may close over differentiated values.
      initial_guess: a tree of arrays, on which the root does not depend.
      solve: `solve(f, initial_guess) -> root`; it is not differentiated.
      tangent_solve: `tangent_solve(g, y) -> x` with g(x) = y, for linear g.  Reverse mode needs it
        to be linear in y (`custom_linear_solve` makes it so).
      has_aux: `solve` returns (root, aux), and so does this function; aux is constant.

    Raises TreeMismatch or TypeRule if `f` or `solve` returns something unlike the guess.

    >>> import plait
    >>> def root(a):
    ...     newton = lambda f, x: plait.lax.fori_loop(0, 6, lambda _, x: (x + a / x) / 2, x)
    ...     return plait.lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> plait.grad(root)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    expect_function(f, "f of custom_root")
    expect_function(solve, "solve of custom_root")
    guess, tree = flatten(initial_guess)
    values = [as_value(x) for x in guess]
    start = tree.unflatten(values)
    residual = trace(f, (start,), {}, "custom_root")
    _alike("f", residual.tree, residual.program.out_avals, tree, values)

    @wraps(solve)
    def solving(x: Value | dict[str, Any]) -> Any:
        return solve(f, x)

    solver = trace(solving, (start,), {}, "custom_root")
    out_tree, outputs = _root_of(solver.tree, has_aux)
    n = len(values)
    _alike("solve", out_tree, solver.program.out_avals[:n], tree, values)
    f_program, find, build = residual.program, solver.program, solver.tree
    expect_function(tangent_solve, "tangent_solve of custom_root")

    def step(x: Value | dict[str, Any], y: Value | dict[str, Any], f_consts: list) -> Any:
        of_x = lambda v: tree.unflatten(evaluate(f_program, [*f_consts, *flatten(v)[0]]))  # noqa: E731
        return tangent_solve(linearize(of_x, x)[1], y)

    # The tangent solver may close over differentiated values (factors of a matrix).  Then it is
    # traced here, where these may be used, and takes them as operands.  Otherwise it runs on
    # values when a derivative is needed.
    by_program, step_consts = None, []
    if tracers_of(tangent_solve):
        made = trace(step, (start, start, residual.captured), {}, "custom_root")
        by_program, step_consts = made.program, made.captured

    def push(primals: tuple, x: list, dots: list) -> list:
        f_consts = primals[0]
        of_consts = lambda *c: evaluate(f_program, [*c, *x])  # noqa: E731
        right = [neg(r) for r in jvp(of_consts, tuple(f_consts), tuple(dots))[1]]
        if by_program is not None:
            return evaluate(by_program, [*primals[2], *x, *right, *f_consts])
        return flatten(step(tree.unflatten(x), tree.unflatten(right), f_consts))[0]

    root = _with_rule(find, push, n)
    found = root(residual.captured, solver.captured, step_consts, values)
    return build.unflatten(found) if outputs is None else tuple(build.unflatten(found))


def _with_rule(find: Program, push: Callable[..., list], n: int) -> custom_jvp:
    """Return the function (constants of f, of the solver and of the step, guess) -> outputs.

    Its rule makes it anew for higher orders: a rule that held its own function would be a cycle,
    which keeps the constants in memory.

    Args:
      find: the solver: constants, guess -> root, auxiliary values.
      push: (operands, root, tangents of f's constants) -> tangent of the root.
      n: the number of values of the root.
    """

    @custom_jvp
    def root(f_consts: list, consts: list, step_consts: list, x: list) -> list:
        return evaluate(find, [*consts, *x])

    @root.defjvp
    def root_jvp(primals: tuple, tangents: tuple) -> tuple:
        found = _with_rule(find, push, n)(*primals)
        if not primals[0]:
            return found, [None] * len(found)
        moved = push(primals, found[:n], tangents[0])
        return found, [*moved, *[None] * (len(found) - n)]

    return root


def _root_of(tree: Any, has_aux: bool) -> tuple:
    """Return (the tree of the root, True if an auxiliary value comes with it, else None)."""
    if not has_aux:
        return tree, None
    out = tree.unflatten([0] * tree.num_leaves)
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise ArgumentError(
            "custom_root with has_aux=True needs a solver that returns a pair (root, aux)",
            fix="return (root, aux)",
        )
    return flatten(out[0])[1], True


def _alike(who: str, got: Any, avals: Sequence[Any], tree: Any, values: Sequence[Any]) -> None:
    """Check that a result has the structure, shapes and dtypes of the guess."""
    if got != tree:
        a, b = (t.unflatten([0] * t.num_leaves) for t in (tree, got))
        raise TreeMismatch(
            f"custom_root: {who} returns another structure than initial_guess: {difference(a, b)}",
            fix=f"return a tree like {in_words(tree)}",
        )
    for a, want in zip(avals, values, strict=True):
        if not a.same_type(want.aval):
            raise OperandTypeError(
                f"custom_root: {who} returns {a!r} where initial_guess is {want.aval!r}",
                fix="return what has the shapes and dtypes of the guess",
            )


def dense_solve(g: Callable, y: dict[str, Any]) -> Any:
    """Solve g(x) = y for a linear g on trees of arrays, by its matrix and an LU factorisation.

    Use it for few unknowns: the matrix has as many rows and columns as there are elements.
    """
    leaves, tree = flatten(y)
    values = [as_value(v) for v in leaves]

    def flat(xs: Sequence[Any]) -> Any:
        return concatenate([reshape(x, (x.aval.size,)) for x in xs])

    columns = map_axes(lambda *e: flat(flatten(g(tree.unflatten(e)))[0]), 0, 1, parallel=True)
    matrix, right = columns(*basis(values)), flat(values)
    x = reshape(
        ops.linalg.general(matrix, reshape(right, (right.aval.size, 1))), (right.aval.size,)
    )
    out, at = [], 0
    for v in values:
        out.append(reshape(x[at : at + v.aval.size], v.aval.shape))
        at += v.aval.size
    return tree.unflatten(out)


@border
def implicit_diff(
    optimality: Callable, tangent_solve: Callable = dense_solve, has_aux: bool = False
) -> Callable:
    """Return a decorator of solvers whose results are differentiated by their conditions.

    Args:
      optimality: `optimality(x, *args)` is zero at the solver's result x, and a tree like x.  It
        is the gradient of a minimised function, x - g(x) for a fixed point of g, ...
      tangent_solve: as for `custom_root`; by default a dense matrix, for few unknowns.
      has_aux: the solver returns (x, aux); aux is constant.

    Returns:
      A decorator of `solver(initial_guess, *args)`.  The result is differentiable in args: forward,
      in reverse, and to every order.

    >>> import plait
    >>> @plait.implicit_diff(lambda x, a: x * x - a)
    ... def root(x, a):
    ...     return plait.lax.fori_loop(0, 6, lambda _, x: (x + a / x) / 2, x)
    >>> plait.grad(root, argnums=1)(1.0, 4.0)
    Array(0.25, dtype=float32)
    """

    expect_function(optimality, "implicit_diff")
    expect_function(tangent_solve, "tangent_solve of implicit_diff")

    def decorate(solver: Callable) -> Callable:
        expect_function(solver, "implicit_diff(...)")

        @border
        @wraps(solver)
        def solved(initial_guess: object, *args: object) -> Any:
            @wraps(optimality)
            def condition(x: object) -> Any:
                return optimality(x, *args)

            @wraps(solver)
            def solve(f: Callable, x: object) -> Any:
                return solver(x, *args)

            return custom_root(condition, initial_guess, solve, tangent_solve, has_aux)

        return solved

    return decorate
