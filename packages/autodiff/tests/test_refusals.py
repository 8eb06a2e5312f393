"""What cannot be differentiated, or not so, is refused: what happened, where, and what to write.

Invariant: nothing is compiled here, and no message comes from inside.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import PlaitError

X = np.float32([1.0, 2.0])
WIDE, LONG, INTS = X.astype(np.float64), np.ones(3, np.float32), np.int32([1, 2])
squares = lambda v: (v * v).sum()  # noqa: E731
pair = lambda a, b: (a * b).sum()  # noqa: E731
OF_FUNCTIONS = (
    "grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "linearize", "vjp", "checkpoint",
    "custom_jvp", "custom_vjp", "fwd_laplacian", "linear_transpose",
)  # fmt: skip
OF_ONE = ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "fwd_laplacian")


def turning(c):
    return lax.while_loop(lambda v: v < 10.0, lambda v: v * 2, c)


def kept():
    found = []
    plait.grad(lambda v: (found.append(v), v)[1])(1.0)
    return found[0] + 1


BAD = {
    **{f"{n} of no function": lambda n=n: getattr(plait, n)(3) for n in OF_FUNCTIONS},
    "jvp of no function": lambda: plait.jvp(3, (1.0,), (1.0,)),
    "jet of no function": lambda: plait.jet(3, (1.0,), ([1.0],)),
    "hvp of no function": lambda: plait.hvp(3, (1.0,), (1.0,)),
    "check_grads of no function": lambda: plait.check_grads(3, (X,), 1),
    # ---- which arguments
    **{f"{n}, argument 5": lambda n=n: getattr(plait, n)(squares, argnums=5)(X) for n in OF_ONE},
    **{
        f"{n}, argument 'x'": lambda n=n: getattr(plait, n)(squares, argnums="x")(X) for n in OF_ONE
    },
    **{
        f"{n}, argument 1.0": lambda n=n: getattr(plait, n)(squares, argnums=1.0)(X) for n in OF_ONE
    },
    **{
        f"{n}, one twice": lambda n=n: getattr(plait, n)(pair, argnums=(0, 0))(X, X) for n in OF_ONE
    },
    **{f"{n}, no arguments": lambda n=n: getattr(plait, n)(squares)() for n in OF_ONE},
    **{f"{n} by keyword": lambda n=n: getattr(plait, n)(squares)(v=X) for n in OF_ONE},
    **{f"{n} of text": lambda n=n: getattr(plait, n)(squares)("a") for n in OF_ONE},
    **{f"{n} of integers": lambda n=n: getattr(plait, n)(squares)(INTS) for n in OF_ONE},
    "grad, one twice from the end": lambda: plait.grad(pair, argnums=(0, -2))(X, X),
    "grad, nested": lambda: plait.grad(squares, argnums=((0,),))(X),
    "grad, None": lambda: plait.grad(squares, argnums=None)(X),
    # ---- of what
    "grad of an array": lambda: plait.grad(lambda v: v * 2)(X),
    "grad of a bool": lambda: plait.grad(lambda v: v * 1.0)(True),
    "grad of an object": lambda: plait.grad(lambda v: 1.0)(object()),
    "grad of a key": lambda: plait.grad(lambda v: 1.0)(plait.random.key(0)),
    "grad of an integer in a tree": lambda: plait.grad(lambda d: d["a"] * 2)({"a": 1.0, "b": 1}),
    "grad of text in a tree": lambda: plait.grad(lambda d: d[0] * 2.0)([1.0, "s"]),
    "grad of complex results": lambda: plait.grad(lambda v: squares(v) * 1j)(X),
    "grad, holomorphic of real": lambda: plait.grad(lambda v: v * v, holomorphic=True)(1.0),
    "grad of nothing": lambda: plait.grad(lambda v: None)(X),
    "grad of returned text": lambda: plait.grad(lambda v: "a")(X),
    "grad of a returned integer": lambda: plait.grad(lambda v: 3)(X),
    "grad of two results": lambda: plait.grad(lambda v: (squares(v), squares(v)))(X),
    "grad without aux": lambda: plait.grad(squares, has_aux=True)(X),
    "grad with two aux": lambda: plait.grad(lambda v: (squares(v), 1, 2), has_aux=True)(X),
    "grad of a loop": lambda: plait.grad(turning)(1.0),
    "grad of a branch in Python": lambda: plait.jit(plait.grad(lambda v: v if v > 0 else -v))(1.0),
    "grad of a value that was kept": kept,
    "jacfwd of complex": lambda: plait.jacfwd(lambda v: v * v)(np.complex64([1j])),
    "jacfwd without aux": lambda: plait.jacfwd(squares, has_aux=True)(X),
    "jacrev of integer results": lambda: plait.jacrev(lambda v: np.int32(1))(X),
    "hessian without aux": lambda: plait.hessian(squares, has_aux=True)(X),
    "fwd_laplacian of complex": lambda: plait.fwd_laplacian(lambda v: abs(v).sum())(
        np.complex64([1j])
    ),
    "custom_jvp without a rule": lambda: plait.grad(plait.custom_jvp(lambda v: v * v))(1.0),
    "custom_vjp without a rule": lambda: plait.grad(plait.custom_vjp(lambda v: v * v))(1.0),
    "checkpoint, no policy": lambda: plait.checkpoint(squares, policy=3)(X),
    "checkpoint, static argument 5": lambda: plait.checkpoint(pair, static_argnums=5)(X, X),
    # ---- along what
    "jvp, trees": lambda: plait.jvp(squares, (X,), ({"a": X},)),
    "jvp, count": lambda: plait.jvp(squares, (X,), (X, X)),
    "jvp, no tuples": lambda: plait.jvp(squares, X, X),
    "jvp, shape": lambda: plait.jvp(squares, (X,), (LONG,)),
    "jvp, dtype": lambda: plait.jvp(squares, (X,), (WIDE,)),
    "jvp, integer tangents": lambda: plait.jvp(squares, (X,), (INTS,)),
    "jvp, tangents of integers": lambda: plait.jvp(lambda v: v * 2, (INTS,), (INTS,)),
    "jvp, None": lambda: plait.jvp(squares, (X,), (None,)),
    "jvp, text": lambda: plait.jvp(squares, (X,), ("a",)),
    "jvp without aux": lambda: plait.jvp(squares, (X,), (X,), has_aux=True),
    "vjp, shape": lambda: plait.vjp(lambda v: v * 2, X)[1](LONG),
    "vjp, dtype": lambda: plait.vjp(lambda v: v * 2, X)[1](WIDE),
    "vjp, tree": lambda: plait.vjp(lambda v: (v, v), X)[1](X),
    "vjp, None": lambda: plait.vjp(lambda v: v, X)[1](None),
    "vjp, two": lambda: plait.vjp(lambda v: v, X)[1](X, X),
    "vjp, nothing": lambda: plait.vjp(lambda v: v, X)[1](),
    "vjp of text": lambda: plait.vjp(lambda v: 1.0, "a"),
    "vjp without aux": lambda: plait.vjp(squares, X, has_aux=True),
    "linearize, shape": lambda: plait.linearize(squares, X)[1](LONG),
    "linearize, tree": lambda: plait.linearize(squares, X)[1]((X,)),
    "linearize, two": lambda: plait.linearize(squares, X)[1](X, X),
    "linear_transpose of a square": lambda: plait.linear_transpose(lambda v: v * v, X)(X),
    "linear_transpose of integers": lambda: plait.linear_transpose(lambda v: v * 1.5, INTS),
    "linear_transpose of both": lambda: plait.linear_transpose(lambda v, x: v * x, INTS, 1.0),
    "linear_transpose of booleans": lambda: plait.linear_transpose(lambda v: v, INTS > 0),
    "floats back to integers": lambda: plait.linear_transpose(lambda v: v, INTS)(np.ones(3)),
    "linear_transpose, shape": lambda: plait.linear_transpose(lambda v: 2 * v, X)(LONG),
    "hvp, shape": lambda: plait.hvp(squares, (X,), (LONG,)),
    "jet, orders": lambda: plait.jet(squares, (X,), ([X, X], [X])),
    "jet, shape": lambda: plait.jet(squares, (X,), ([LONG],)),
    "jet, tree": lambda: plait.jet(squares, (X,), ([{"a": X}],)),
    "jet, None": lambda: plait.jet(squares, (X,), None),
    "jet of text": lambda: plait.jet(squares, ("a",), (["a"],)),
    "jet of integers": lambda: plait.jet(lambda v: v * 2, (INTS,), ([INTS],)),
    "jet of nothing": lambda: plait.jet(lambda: 1.0, (), ()),
    "check_grads, order 0": lambda: plait.check_grads(squares, (X,), 0),
    "check_grads, order '1'": lambda: plait.check_grads(squares, (X,), "1"),
    "check_grads, mode": lambda: plait.check_grads(squares, (X,), 1, modes=("both",)),
    "check_grads, no tuple": lambda: plait.check_grads(squares, X, 1),
    "check_grads of integers": lambda: plait.check_grads(squares, (INTS,), 1),
}


NOT_LINEAR = {
    "square": (lambda v: v * v, "core.mul"),
    "quotient": (lambda v: v / v, "core.div"),
    "reciprocal": (lambda v: 1 / v, "core.div"),
    "choice": (lambda v: lax.select(v > 0, v, v), "core.select"),
    "inner": (lambda v: lax.dot(v, v), "core.dot_general"),
    "jitted": (plait.jit(lambda v: 3 * v * v), "core.mul"),
    "in a loop": (lambda v: lax.scan(lambda c, w: (c * w, None), v[0], v)[0], "core.mul"),
    "solution": (
        lambda v: plait.lax.linalg.triangular_solve(
            v * np.eye(3), np.ones((3, 1)), left_side=True
        ).sum(),
        "linalg.triangular_solve",
    ),
    "solution of both": (
        lambda v: plait.numpy.linalg.solve(v * np.eye(3), v * np.ones(3)).sum(),
        "linalg.solve",
    ),
    "scaled before": (lambda v: 2 * ((3 * v) * v), "core.mul"),
}


OF_VECTORS = ("inner", "in a loop")


@pytest.mark.parametrize(
    "name, x",
    [(n, np.arange(1.0, 4)) for n in NOT_LINEAR]
    + [(n, np.float32(2)) for n in NOT_LINEAR if n not in OF_VECTORS],
    ids=lambda v: v if isinstance(v, str) else ("vector" if v.ndim else "number"),
)
def test_what_is_not_linear_is_said(name, x):
    """With the operation, and never a placeholder for what is linear as a result."""
    f, operation = NOT_LINEAR[name]
    out = plait.eval_shape(f, x)
    ct = np.ones(out.shape, out.dtype)
    for one in (ct, 2 * ct):
        with pytest.raises(PlaitError, match=f"{operation} is not linear in") as caught:
            plait.linear_transpose(f, x)(one)
        assert "vjp" in caught.value.fix and "test_refusals.py" in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_three_parts(name):
    with pytest.raises(PlaitError) as caught:
        BAD[name]()
    assert caught.value.what and caught.value.fix, str(caught.value)
    assert "test_refusals.py" in str(caught.value), str(caught.value)


def host(x):
    return plait.pure_callback(lambda v: v * 2, plait.ShapeDtypeStruct((2,), np.float32), x)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: plait.jvp(f, (X,), (X,)),
        lambda f: plait.vjp(f, X),
        lambda f: plait.linearize(f, X),
        lambda f: plait.linear_transpose(f, X)(X),
        lambda f: plait.jit(plait.grad(lambda x: f(x).sum()))(X),
        lambda f: plait.grad(plait.checkpoint(lambda x: f(x).sum()))(X),
    ],
)
def test_callbacks_have_no_derivative(derivative):
    """By one error, a ValueError as well, whichever derivative is asked for."""
    with pytest.raises(ValueError, match="callback") as e:
        derivative(host)
    assert isinstance(e.value, NotImplementedError) and "custom_vjp" in e.value.fix


@pytest.mark.parametrize("ways", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_what_looks_at_linear_values_is_left_out_of_the_transpose(ways, capsys):
    """They are not computed there.  What must happen cannot, and is refused."""
    prints = ways(lambda x: (plait.debug.print("{}", x), 2 * x)[1])
    (ct,) = plait.linear_transpose(prints, X)(X)
    np.testing.assert_array_equal(ct, 2 * X)
    assert not capsys.readouterr().out
    acts = ways(lambda x: (plait.io_callback(print, None, x), 2 * x)[1])
    with pytest.raises(ValueError, match="cannot be transposed"):
        plait.linear_transpose(acts, X)(X)
