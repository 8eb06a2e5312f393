"""jvp, linearize, linear_transpose, vjp, value_and_grad and grad, on trees of values.

Invariant: each function opens its interpreters over the current one and closes them before it
returns.  So a value from inside that is used later has escaped, and nested uses cannot confuse
their perturbations.
"""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from plait import ShapeDtypeStruct
from plait.ext.errors import ArgumentError, OperandTypeError, border, names_at, names_of_arguments
from plait.ext.trace import (
    GROUND,
    Stage,
    Value,
    admitted,
    admitted_leaves,
    current,
    handle_among,
    is_recorded,
    is_unplaced,
    name_of,
    opened,
    wraps,
)
from plait.ext.tree import each_leaf, flatten
from plait.ext.types import INTEGER

from .adable import adables
from .forward import JVP
from .linearization import Linearized, linearized, linearized_at_contents, pushed, without_tangents
from .linearized_functions import Derivative, Pullback, Pushforward, Transposed
from .recording import recorded_gradient, recorded_jvp, recorded_linearization
from .tangents import (
    expect_differentiable,
    expect_function,
    is_single,
    matching,
    numbers,
    of_chosen,
    pair_of,
    positions,
    tangent,
)
from .transpose import Linear

P = ParamSpec("P")
R = TypeVar("R")


# ---- forward mode --------------------------------------------------------------------------


@border
def jvp(
    fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return `(fun(*primals), derivative along tangents)`, computed together.

    Args:
      fun: takes and returns trees of arrays.
      primals, tangents: tuples (or lists) of arguments, and of trees like the arguments.  Tangents
        of integers and booleans have dtype float0.
      has_aux: `fun` returns (out, aux); the result is (out, tangent, aux).

    Raises TypeRule or TreeMismatch if primals and tangents do not match.

    >>> import plait
    >>> plait.jvp(plait.lax.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    expect_function(fun, "jvp")
    for what, x in (("primals", primals), ("tangents", tangents)):
        if not isinstance(x, tuple | list):
            raise ArgumentError(
                f"the {what} of jvp must be a tuple or list of arguments, not {type(x).__name__}",
                fix="write jvp(f, (x,), (t,))",
            )
    primals = adables.opened(tuple(primals))
    leaves, tree = flatten(primals)
    given = matching(primals, tuple(tangents), tree, "primals and tangents of jvp")
    xs = admitted_leaves(leaves, primals, lambda: names_of_arguments(fun))
    what = "jvp was given a tangent of another type"
    ts = each_leaf(
        (tangent(t, x.aval, what) for t, x in zip(given, xs)), primals, names_of_arguments(fun)
    )
    if current() is GROUND and is_recorded(fun, "jvp") and all(map(is_unplaced, [*xs, *ts])):
        return recorded_jvp(fun, xs, ts, tree, has_aux, jvp)
    j = JVP(current(), of=fun)
    with opened(j):
        out = fun(*tree.unflatten([j.dual(x, t) for x, t in zip(xs, ts)]))
        out, aux = pair_of(out, "jvp") if has_aux else (out, None)
        outs, out_tree = flatten(adables.opened(out))
        outs = [admitted(o) for o in outs]
    values, dots = pushed(j, outs)
    result = out_tree.unflatten(values), out_tree.unflatten(dots)
    return (*result, without_tangents(j, aux)) if has_aux else result


# ---- linearization -------------------------------------------------------------------------


@border
def linearize(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `(fun(*primals), fun_lin)`, where `fun_lin` maps tangents to tangents linearly.

    The computation on primals alone is done once; a call of `fun_lin` does the linear part.

    >>> import plait
    >>> y, f_lin = plait.linearize(plait.lax.sin, 0.0)
    >>> f_lin(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    expect_function(fun, "linearize")
    r = _linearized(fun, primals, has_aux, "linearize")

    fun_lin = Pushforward(r.derivative(), r.residuals)
    out = r.tree.unflatten(r.outs)
    return (out, fun_lin, r.aux) if has_aux else (out, fun_lin)


def _linearized(fun: Callable[..., Any], primals: tuple, has_aux: bool, does: str) -> Linearized:
    if current() is GROUND and is_recorded(fun, does):
        return recorded_linearization(fun, primals, has_aux, does)
    return linearized(fun, primals, has_aux, does, fun)


@border
def linear_transpose(fun: Callable[..., Any], *primals: object) -> Callable:
    """Return the transpose of a function that is linear in all its arguments.

    Args:
      fun: linear in `primals` together; may close over anything.  For an affine function the
        result is the transpose of the linear part: constant terms are ignored.
      primals: arrays, ShapeDtypeStructs or other objects with a shape and a dtype; only these
        matter.  All are floating or complex, or all are integers; integers have integer results.

    Returns:
      A function from a cotangent like `fun`'s result to a tuple of cotangents like `primals`.  Its
      leaves as a tree are the values that `fun` closes over, as those of pullbacks are residuals.

    Raises MissingRule if `fun` contains an operation that is not linear.  The returned function
    raises TypeRule for a cotangent of another type.  That includes a cotangent that varies along a
    mesh axis along which the result does not vary.

    >>> import plait
    >>> plait.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    expect_function(fun, "linear_transpose")
    leaves, tree = flatten(adables.opened(primals))
    # The type of a value matters as a whole, with the mesh axes along which it varies.
    avals = [
        x.aval if isinstance(x, Value | Linear) else ShapeDtypeStruct.like(x).aval for x in leaves
    ]
    integers = bool(avals) and all(a.category == INTEGER for a in avals)
    for a in avals:
        if not a.varies and not integers:
            raise OperandTypeError(
                f"linear_transpose is for real or complex arguments, or for integers, not {a!r} "
                "among others",
                fix="close over what is not differentiable",
            )
    out_tree: Any = None
    parent = current()
    s = Stage(parent, "linear_transpose", fun)
    with opened(s):
        out = adables.opened(fun(*tree.unflatten([s.input(a) for a in avals])))
        outs, out_tree = flatten(out)
        outs = [admitted(o) for o in outs]
    s.closed = False
    for o in outs:
        if integers and o.aval.category != INTEGER:
            raise OperandTypeError(
                f"linear_transpose of a function of integers is of integers, not of {o.aval!r}",
                fix="convert the arguments to a floating dtype",
            )
    program, captured = s.close(outs, name_of(fun))

    ends = tree, tuple(avals), out_tree, tuple(program.out_avals)
    return Transposed(Derivative(program, *ends, (True,) * len(outs)), captured)


# ---- reverse mode --------------------------------------------------------------------------


@border
def vjp(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `(fun(*primals), pullback)`.

    The pullback maps a cotangent like the result to a tuple of cotangents like the arguments.  Its
    method `with_refs` adds cotangents to references, or leaves them out.

    Args:
      fun: takes and returns trees of arrays.
      primals: the arguments.  A reference is differentiated by its contents before the call.
      has_aux: `fun` returns (out, aux); the result is (out, pullback, aux).

    >>> import plait
    >>> y, pullback = plait.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    expect_function(fun, "vjp")
    leaves, tree = flatten(primals)
    if handle_among(leaves) is not None:
        out, of, residuals, aux = linearized_at_contents(fun, leaves, tree, has_aux, "vjp")
        return (out, Pullback(of, residuals), aux) if has_aux else (out, Pullback(of, residuals))
    r = _linearized(fun, primals, has_aux, "vjp")

    pullback = Pullback(r.derivative(), r.residuals)
    out = r.tree.unflatten(r.outs)
    return (out, pullback, r.aux) if has_aux else (out, pullback)


@border
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that returns `fun`'s value and its gradient.

    Args:
      fun: returns a scalar (and auxiliary values, if `has_aux`).
      argnums: which positional arguments to differentiate: an int, or a tuple of them.
      has_aux: `fun` returns (value, aux); the result is ((value, aux), gradient).
      holomorphic: `fun` is complex differentiable, with complex arguments and result.
      allow_int: integer arguments have float0 gradients instead of being an error.

    Raises TypeRule if the result is not a real scalar, or an argument is not real or complex.

    >>> import plait
    >>> plait.value_and_grad(lambda x: x ** 2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    expect_function(fun, "grad")
    nums, single = numbers(argnums, "grad"), is_single(argnums)

    @border
    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        of, chosen = of_chosen(fun, nums, args, kwargs)
        named = lambda: names_at(fun, positions(nums, args, fun))  # noqa: E731
        expect_differentiable(chosen, holomorphic, allow_int, "grad", named)
        if current() is GROUND and is_recorded(fun, "grad"):
            value, aux, g = recorded_gradient(of, chosen, has_aux, holomorphic, fun, value_and_grad)
        else:
            value, aux, g = linearized(of, chosen, has_aux, "grad", fun).gradient(holomorphic)
        return (value, aux) if has_aux else value, g[0] if single else g

    return gradient


@border
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return the gradient function of a scalar function; arguments as for `value_and_grad`.

    With `has_aux` its result is (gradient, aux).  The gradient of a real function of complex
    numbers z = x + iy is df/dx - i df/dy.

    >>> import plait
    >>> plait.grad(lambda x: x ** 3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @border
    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient
