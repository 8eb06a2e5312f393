"""Values that outlive the transformation they belong to.

Whoever made them, using them afterwards is an error that says on which line the value was created,
which function was being transformed, where that is defined, and by what.
"""

import functools
import inspect
import os
from types import FunctionType

import numpy as np
import pytest

import plait
import plait_autodiff.ext
from plait import ext, lax
from plait.errors import UnexpectedTracerError

pnp = plait.numpy
saved: list = []


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def leak(x):
    """Keep a value made here."""
    saved.append(x * 2 + 1)  # the line that creates it
    return x


def leak_pair(c, r):
    saved.append(c * 2 + 1)  # the line that creates it
    return c, None


def leak_of_equation(f, x):
    saved.append(x * 2 + 1)  # the line that creates it
    return x


def leak_pair_of_numbers(x, a):
    saved.append(x * 2 + 1)  # the line that creates it
    return a


def leak_and_fail(x):
    saved.append(x * 2 + 1)  # the line that creates it
    raise ValueError("on purpose")


def turn(s):
    saved.append(s[1] * 2 + 1)  # the line that creates it
    return s[0] + 1, s[1]


def going(s):
    saved.append(s[1] * 2 + 1)  # the line that creates it
    return s[0] < 3


def rule(primals, tangents):
    saved.append(tangents[0] * 2 + 1)  # the line that creates it
    return primals[0], tangents[0]


def forward(x):
    saved.append(x * 2 + 1)  # the line that creates it
    return x, x


def backward(r, ct):
    saved.append(ct * 2 + 1)  # the line that creates it
    return (ct * r,)


def custom_jvp(rule):
    f = plait.custom_jvp(lambda x: x * 1)
    f.defjvp(rule)
    return f


def custom_vjp(fwd, bwd):
    f = plait.custom_vjp(lambda x: x * 1)
    f.defvjp(fwd, bwd)
    return f


def failing(run):
    with pytest.raises(ValueError, match="on purpose"):
        run()


quiet_forward = lambda x: (x * 1, x)  # noqa: E731
quiet_backward = lambda r, ct: (ct * r,)  # noqa: E731


def in_loop(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


# name: (what is run with a function that leaks, that function, what is said to be done to which)
LEAKS = {
    "jit": (lambda f: plait.jit(f)(f32(1)), leak, "jit of leak"),
    "jit of a failing function": (
        lambda f: failing(lambda: plait.jit(f)(f32(1))),
        leak_and_fail,
        "jit of leak_and_fail",
    ),
    "grad": (lambda f: plait.grad(f)(f32(1)), leak, "grad of leak"),
    "grad of a failing function": (
        lambda f: failing(lambda: plait.grad(f)(f32(1))),
        leak_and_fail,
        "grad of leak_and_fail",
    ),
    "value_and_grad": (lambda f: plait.value_and_grad(f)(f32(1)), leak, "grad of leak"),
    "jvp": (lambda f: plait.jvp(f, (f32(1),), (1.0,)), leak, "jvp of leak"),
    "linearize": (lambda f: plait.linearize(f, f32(1)), leak, "linearize of leak"),
    "vjp": (lambda f: plait.vjp(f, f32(1)), leak, "vjp of leak"),
    "jacfwd": (lambda f: plait.jacfwd(f)(f32([1, 2])), leak, None),
    "jacrev": (lambda f: plait.jacrev(f)(f32([1, 2])), leak, None),
    "hessian": (lambda f: plait.hessian(lambda x: f(x).sum())(f32([1, 2])), leak, None),
    "linear_transpose": (
        lambda f: plait.linear_transpose(f, f32(1))(f32(1)),
        leak,
        "linear_transpose of leak",
    ),
    "vmap": (lambda f: plait.vmap(f)(f32([1])), leak, "vmap of leak"),
    "vmap of a failing function": (
        lambda f: failing(lambda: plait.vmap(f)(f32([1]))),
        leak_and_fail,
        "vmap of leak_and_fail",
    ),
    "scan": (
        lambda f: lax.scan(f, f32(1), None, length=2),
        leak_pair,
        "scan of leak_pair",
    ),
    "while": (
        lambda f: lax.while_loop(lambda s: s[0] < 3, f, (0, f32(1))),
        turn,
        "while_loop of turn",
    ),
    "while predicate": (
        lambda f: lax.while_loop(f, lambda s: (s[0] + 1, s[1]), (0, f32(1))),
        going,
        "while_loop of going",
    ),
    "fori": (lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), f32(1)), leak, "fori_loop of"),
    "map": (lambda f: lax.map(f, f32([1, 2])), leak, "scan of"),
    "map_axes": (lambda f: plait.map_axes(f)(f32([1, 2])), leak, "map_axes of leak"),
    "cond": (lambda f: lax.cond(True, f, lambda x: x, f32(1)), leak, "cond of leak"),
    "switch": (
        lambda f: lax.switch(1, [lambda x: x, f, lambda x: x], f32(1)),
        leak,
        "switch of leak",
    ),
    "checkpoint": (lambda f: plait.checkpoint(f)(f32(1)), leak, "checkpoint of leak"),
    "shard_map": (
        lambda f: plait.shard_map(
            f, mesh=plait.make_mesh((1,), "i"), in_specs=plait.P(), out_specs=plait.P()
        )(f32(1)),
        leak,
        "shard_map of leak",
    ),
    "pmap": (lambda f: plait.pmap(f)(f32([1])), leak, "shard_map of leak"),
    "eval_shape": (lambda f: plait.eval_shape(f, f32(1)), leak, "eval_shape of leak"),
    "make_program": (lambda f: plait.make_program(f)(f32(1)), leak, "make_program of leak"),
    "custom_jvp rule": (
        lambda f: plait.vmap(plait.grad(custom_jvp(f)))(f32([1, 2])),
        rule,
        "grad of",
    ),
    "custom_jvp rule under jit": (
        lambda f: plait.grad(plait.jit(custom_jvp(f)))(f32(1)),
        rule,
        "rule of rule",
    ),
    "custom_jvp rule in a loop": (
        lambda f: plait.grad(in_loop(custom_jvp(f)))(f32(1)),
        rule,
        "rule of rule",
    ),
    "custom_jvp rule under vmap": (
        lambda f: plait.grad(lambda x: plait.vmap(custom_jvp(f))(x).sum())(f32([1, 2])),
        rule,
        "rule of rule",
    ),
    "custom_vjp fwd under vmap": (
        lambda f: plait.vmap(plait.grad(custom_vjp(f, quiet_backward)))(f32([1, 2])),
        forward,
        "vmap of",
    ),
    "custom_vjp fwd under jit": (
        lambda f: plait.grad(plait.jit(custom_vjp(f, quiet_backward)))(f32(1)),
        forward,
        "rule of forward",
    ),
    "custom_vjp bwd under vmap": (
        lambda f: plait.vmap(
            lambda x, y: plait.grad(lambda x: custom_vjp(quiet_forward, f)(x) * y)(x)
        )(f32([1, 2]), f32([1, 2])),
        backward,
        "vmap of",
    ),
    "custom_vjp bwd under jit": (
        lambda f: plait.jit(
            lambda x, y: plait.grad(lambda x: custom_vjp(quiet_forward, f)(x) * y)(x)
        )(f32(1), f32(2)),
        backward,
        "jit of",
    ),
    "custom_vjp bwd in a loop": (
        lambda f: plait.grad(in_loop(custom_vjp(quiet_forward, f)))(f32(1)),
        backward,
        "rule of backward",
    ),
    "second order": (lambda f: plait.grad(plait.grad(f))(f32(1)), leak, "grad of leak"),
    "jit of vmap of grad": (
        lambda f: plait.jit(plait.vmap(plait.grad(f)))(f32([1])),
        leak,
        "grad of leak",
    ),
    "custom_linear_solve": (
        lambda f: lax.custom_linear_solve(f, f32(1), lambda mv, b: b / 2),
        leak,
        "custom_linear_solve of leak",
    ),
    "custom_linear_solve, solver": (
        lambda f: lax.custom_linear_solve(lambda v: 2 * v, f32(1), f),
        leak_of_equation,
        "custom_linear_solve of leak_of_equation",
    ),
    "custom_root": (
        lambda f: lax.custom_root(f, f32(0), lambda g, x: x, lambda g, y: y),
        leak,
        "custom_root of leak",
    ),
    "custom_root, solver": (
        lambda f: lax.custom_root(lambda x: x, f32(0), f, lambda g, y: y),
        leak_of_equation,
        "custom_root of leak_of_equation",
    ),
    "implicit_diff": (
        lambda f: plait.implicit_diff(f)(lambda s, a: a)(f32(0), f32(1)),
        leak_pair_of_numbers,
        "custom_root of leak_pair_of_numbers",
    ),
    "implicit_diff, solver": (
        lambda f: plait.implicit_diff(lambda y, a: y - a)(f)(f32(0), f32(1)),
        leak_pair_of_numbers,
        "custom_root of leak_pair_of_numbers",
    ),
    "composite": (lambda f: lax.composite(f, "a.b")(f32(1)), leak, "a.b of leak"),
    "grad of scan": (
        lambda f: plait.grad(lambda x: lax.scan(f, x, None, length=2)[0])(f32(1)),
        leak_pair,
        "scan of leak_pair",
    ),
}

USES = {
    "arithmetic": lambda x: x + 1,
    "arithmetic with itself": lambda x: x * x,
    "reflected": lambda x: 1.0 - x,
    "a function": lax.sin,
    "a method": lambda x: x.astype(np.int32),
    "indexing": lambda x: x[None],
    "jit": lambda x: plait.jit(lambda y: y * 2)(x),
    "a closure of jit": lambda x: plait.jit(lambda y: x * y)(f32(1)),
    "a closure of grad": lambda x: plait.grad(lambda y: x * y)(f32(1)),
    "a closure of vmap": lambda x: plait.vmap(lambda y: x * y)(f32([1])),
    "grad": lambda x: plait.grad(lambda y: y * 2)(x),
    "vmap": lambda x: plait.vmap(lambda y: y * 2, in_axes=None, axis_size=1)(x),
    "scan": lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=2),
    "a closure of scan": lambda x: lax.scan(lambda c, _: (c * x, None), f32(1), None, length=2),
    "a result of jit": lambda x: plait.jit(lambda y: x)(f32(1)),
    "a result of value_and_grad": lambda x: plait.value_and_grad(lambda y: x)(f32(1))[0] + 1,
    "a result of vmap": lambda x: plait.vmap(lambda y: x)(f32([1])),
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "numpy.asarray": np.asarray,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "asarray": lambda x: pnp.asarray(x) + 1,
    "if": lambda x: 1 if x > 0 else 2,
}
ALWAYS = ("arithmetic", "bool", "numpy.asarray")


def leaked(name):
    """A value leaked from this transformation."""
    saved.clear()
    run, f, _ = LEAKS[name]
    run(FunctionType(f.__code__, f.__globals__, f.__name__))  # one that was never traced
    return saved[0]


def creating_line(f):
    """`file:line` of the marked line of a function."""
    lines, first = inspect.getsourcelines(f)
    at = next(i for i, line in enumerate(lines) if "the line that creates it" in line)
    return f"{__file__}:{first + at}"


@pytest.mark.feature("C01")
@pytest.mark.parametrize("use", ALWAYS)
@pytest.mark.parametrize("name", LEAKS)
def test_line_that_created_it(name, use):
    """Whatever leaked it, and however it is used: the error names the creating line."""
    x = leaked(name)
    with pytest.raises(UnexpectedTracerError) as caught:
        USES[use](x)
    text = str(caught.value)
    assert f"created on line {creating_line(LEAKS[name][1])}" in text
    assert caught.value.fix in text


@pytest.mark.feature("C02")
@pytest.mark.parametrize("name", LEAKS)
def test_function_and_transformation(name):
    """The error names the transformed function, its file and line, and the transformation."""
    x = leaked(name)
    with pytest.raises(UnexpectedTracerError) as caught:
        x + 1
    text = str(caught.value)
    _, function, title = LEAKS[name]
    assert " at " + os.path.join(os.path.dirname(__file__), "") in text  # where it is defined
    if title is not None:
        assert title in text
        if title.endswith(function.__name__):
            first = function.__code__.co_firstlineno
            assert f"{title} at {__file__}:{first}" in text


@pytest.mark.feature("C01")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["jit", "grad", "vmap", "jvp", "scan"])
def test_uses(name, use):
    """Every way of using a leaked value is noticed, and the error names the line that used it."""
    x = leaked(name)
    line = USES[use].__code__.co_firstlineno if hasattr(USES[use], "__code__") else None
    with pytest.raises(UnexpectedTracerError) as caught:
        USES[use](x)
    text = str(caught.value)
    assert f"created on line {creating_line(LEAKS[name][1])}" in text
    if line is not None and not hasattr(USES[use], "__wrapped__") and use != "a function":
        assert f"at {__file__}:{line}" in text


def test_looking_at_it():
    """What needs no value still works: its type, its repr."""
    for name in ("jit", "grad", "vmap"):
        x = leaked(name)
        assert x.shape == () and x.dtype == np.float32
        assert "f32[]" in repr(x)


def test_leaked_from_outside_in():
    """A value of an outer transformation that is still open is no leak."""
    kept = []

    def f(x):
        kept.append(x)
        return plait.grad(lambda y: y * kept[0])(2.0)

    assert plait.grad(f)(f32(3)).item() == 1
    with pytest.raises(UnexpectedTracerError, match="grad of f at"):
        kept[0] + 1


def test_leaked_by_a_class_and_a_partial():
    """Callables that are not functions are named too."""

    class Layer:
        def __call__(self, x):
            saved.append(x * 2 + 1)
            return x

    line = Layer.__call__.__code__.co_firstlineno
    for f, name in ((Layer(), "Layer"), (functools.partial(Layer.__call__, Layer()), "__call__")):
        for transform in (plait.jit, plait.grad):
            saved.clear()
            transform(f)(f32(1))
            with pytest.raises(UnexpectedTracerError, match=f"{name} at {__file__}:{line}"):
                saved[0] + 1


def test_leaked_from_a_table_rule():
    """A rule of a stranger's primitive that keeps what it is given."""
    prim = ext.Primitive("leaks.identity", lambda x: x)
    ext.expand_rules.rule(prim)(lambda x: x * 1)

    @plait_autodiff.ext.jvp_rules.rule(prim)
    def _(xs, ts):
        saved.append(xs[0] * 2)
        return prim.bind(*xs), ts[0]

    saved.clear()
    plait.jit(lambda x: plait.jvp(lambda y: prim(y), (x,), (x,)))(f32(1))
    with pytest.raises(UnexpectedTracerError, match="created on line"):
        saved[0] + 1
