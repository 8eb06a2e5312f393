"""Reverse mode by inversion: the same gradients, and nothing kept that can be recovered.

Invariant: gradients are those of the plain function, by plain reverse mode or written out; what
is kept is read from programs and from the memory of compiled ones.
"""

import random
import warnings

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import ConcretizationError
from plait.ext import Primitive, Program, evaluate
from plait.ext.errors import TreeMismatch, UndefinedRule, user_line
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import eager_rules
from plait_autodiff import (
    checkpoint,
    custom_ivjp,
    grad,
    hessian,
    invertible,
    jacfwd,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from plait_autodiff.ext import inverse_rules, jvp_rules, reverse, transpose_rules

pnp = plait.numpy
X = np.float32([0.5, 1.0, 1.5])


def close(got, want, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=1e-6)


def product(x):
    return (pnp.exp(x) * 4.0) * x


def block(x1, x2):
    y1 = lax.sin(x2) + x1
    return y1, lax.cos(y1) + x2


def two(x1, x2):
    return block(*block(x1, x2))


def total(f):
    return lambda *xs: sum(v.sum() for v in f(*xs))


def rev_block(f, g):
    """A block whose rule recovers its arguments while it differentiates."""

    @custom_ivjp
    def rev(x1, x2):
        y1 = f(x2) + x1
        return y1, g(y1) + x2

    @rev.defivjp
    def _(xs, ys, dys):
        (y1, y2), (dy1, dy2) = ys, dys
        go, pull = vjp(g, y1)
        dy1 = dy1 + pull(dy2)[0]
        x2 = y2 - go
        fo, pull = vjp(f, x2)
        return (y1 - fo, x2), (dy1, dy2 + pull(dy1)[0])

    return rev


def equations(program):
    """The names of all primitives in a program and in those within."""
    return [line.split(" = ")[1].split("(")[0].strip() for line in str(program).splitlines()
            if " = " in line]  # fmt: skip


@pytest.mark.feature("A10")
def test_values_are_recovered():
    """The program has the inverses in it, and of what was computed it keeps the result only."""
    f = invertible(product)
    program = plait.make_program(lambda x, ct: vjp(f, x)[1](ct))(X, X)
    names = equations(program)
    assert names.count("core.div") == 2 and names.count("core.exp") == 1
    at = names.index("core.barrier")
    before, after = program.eqns[:at], program.eqns[at:]
    mine = {id(o): e for e in before for o in e.outputs}
    kept = {id(a) for e in after for a in e.inputs if id(a) in mine}
    assert kept == {id(before[-1].outputs[0])} and before[-1].prim.name == "core.mul"
    for g in (f, plait.jit(f), checkpoint(f)):
        y, d = value_and_grad(lambda x, g=g: g(x).sum())(X)
        close(y, product(X).sum())
        close(d, 4 * np.exp(X) * (1 + X))


@pytest.mark.feature("A11")
def test_blocks_with_rules_of_their_own():
    sin, cos = lambda x: lax.sin(x), lambda x: lax.cos(x)
    rev = rev_block(sin, cos)

    def net(x1, x2):
        return rev(*rev(x1, x2))

    want = grad(total(two), (0, 1))(X, X + 1)
    for f in (
        net,
        invertible(net),
        plait.jit(net),
        invertible(plait.jit(net)),
        plait.jit(invertible(net)),
    ):
        for got, w in zip(grad(total(f), (0, 1))(X, X + 1), want):
            close(got, w)
    for n in (2, 8):  # nothing is kept but the results, however many blocks there are
        deep = lambda a, b, n=n: lax.scan(lambda c, _: (rev(*c), None), (a, b), None, n)[0]  # noqa: E731
        r = reverse(plait.make_program(deep)(X, X), (True, True))
        assert r.saved == (False, False) and r.recovered == (True, True)


@pytest.mark.feature("A12")
def test_every_order_of_equations():
    """Fifty random orders of the same equations: all are reversed, with equal gradients."""
    program = plait.make_program(two)(X, X)
    want = [np.asarray(g) for g in grad(total(two), (0, 1))(X, X + 1)]
    values = [pnp.asarray(v) for v in two(pnp.asarray(X), pnp.asarray(X + 1))]
    ones = [pnp.ones(3, np.float32)] * 2
    rng, seen = random.Random(0), set()
    eqns = list(program.eqns)
    dead = plait.make_program(lambda a, b: (lax.sin(a), *two(a, b))[1:])(X, X)
    assert len(dead.eqns) == len(eqns) + 1
    for _ in range(50):
        left, order, ready = list(eqns), [], set(program.inputs)
        while left:
            free = [e for e in left if all(not hasattr(a, "by") or a in ready for a in e.inputs)]
            e = rng.choice(free)
            left.remove(e)
            order.append(e)
            ready.update(e.outputs)
        seen.add(tuple(map(id, order)))
        r = reverse(Program(program.inputs, order, program.outputs), (True, True))
        assert r.saved == (False, False) and r.recovered == (True, True)
        x1, x2, d1, d2 = evaluate(r.program, [*values, *ones])
        for got, w in zip((x1, x2, d1, d2), (X, X + 1, *want)):
            close(got, w)
    r = reverse(dead, (True, True))
    assert r.saved == (False, False)


def forked(a, b):
    """Independent branches: their equations can stand in many orders."""
    u, v = pnp.exp(a) * 2.0, pnp.tanh(b) + 1.0
    w = u * v
    return w, v + pnp.sin(w)


@pytest.mark.feature("A12")
def test_orders_that_differ():
    program = plait.make_program(forked)(X, X)
    want = grad(total(forked), (0, 1))(X, X)
    outs, orders = [pnp.asarray(o) for o in forked(pnp.asarray(X), pnp.asarray(X))], set()
    rng = random.Random(1)
    for _ in range(50):
        left, order, ready = list(program.eqns), [], set(program.inputs)
        while left:
            free = [e for e in left if all(not hasattr(a, "by") or a in ready for a in e.inputs)]
            e = rng.choice(free)
            left.remove(e)
            order.append(e)
            ready.update(e.outputs)
        orders.add(tuple([program.eqns.index(e) for e in order]))
        r = reverse(Program(program.inputs, order, program.outputs), (True, True))
        assert r.saved == (False, False)
        got = evaluate(r.program, [*outs, pnp.ones(3, np.float32), pnp.ones(3, np.float32)])
        for g, w in zip(got, (X, X, *want)):
            close(g, w, 1e-4)
    assert len(orders) > 5


@pytest.mark.feature("A13")
def test_any_arguments():
    """Of two arguments with default argnums, of either, of both."""
    f = invertible(block)
    loss, plain = total(f), total(block)
    for nums in (0, 1, (0, 1), (1, 0)):
        y, g = value_and_grad(loss, nums)(X, X + 1)
        want_y, want = value_and_grad(plain, nums)(X, X + 1)
        close(y, want_y)
        for a, b in zip(g if isinstance(nums, tuple) else [g],
                        want if isinstance(nums, tuple) else [want]):  # fmt: skip
            close(a, b)
    close(plait.jit(grad(loss))(X, X + 1), grad(plain)(X, X + 1))


@pytest.mark.feature("A14")
def test_branching_on_values():
    """Functions and rules may branch where values are known; staged, that is an error."""

    @custom_ivjp
    def f(x):
        return x * 2.0 if x > 0 else x * 5.0

    @f.defivjp
    def _(xs, y, dy):
        k = 2.0 if y > 0 else 5.0
        return (y / k,), (dy * k,)

    g = invertible(lambda x: pnp.exp(x) * 2.0 if x > 0 else x * 5.0)
    for x, slope in ((1.0, 2.0), (-1.0, 5.0)):
        y, pull = vjp(f, np.float32(x))
        assert (y.item(), pull(np.float32(1))[0].item()) == (x * slope, slope)
        assert jvp(f, (np.float32(x),), (np.float32(1),))[1].item() == slope
    close(grad(g)(np.float32(1)), 2 * np.exp(1))
    close(grad(g)(np.float32(-1)), 5)
    for h in (f, g):
        with pytest.raises(ConcretizationError):
            plait.jit(lambda x, h=h: h(x))(np.float32(1))
        with pytest.raises(ConcretizationError):
            plait.jit(grad(h))(np.float32(1))


def host_cube():
    """x ** 3 that runs in Python only: it has no lowering."""
    cube = Primitive("testing.host_cube", lambda x: x)

    def run(args, params):
        return pnp.asarray(np.asarray(args[0]) ** 3)

    eager_rules.rule(cube)(run)
    jvp_rules.rule(cube)(lambda xs, ts: (cube.bind(*xs), ts[0] * xs[0] * xs[0] * 3.0))
    transpose_rules.rule(cube)(lambda ct, x: [None])
    inverse_rules.rule(cube)(lambda y, x: [pnp.cbrt(y)])
    return cube


@pytest.mark.feature("A15")
def test_what_only_python_can_run():
    cube = host_cube()
    f = invertible(lambda x: pnp.exp(cube(x) * 0.1))
    want = np.exp(0.1 * X**3) * 0.3 * X**2
    close(f(X), np.exp(0.1 * X**3))
    close(grad(lambda x: materialise_at_ground(f(x)).sum())(X), want)
    called = []

    def host(x):
        called.append(1)
        return np.sin(x)

    def plain(x):
        shape = plait.ShapeDtypeStruct(x.shape, np.float32)
        return x + plait.pure_callback(host, shape, lax.stop_gradient(x))

    for g in (invertible(plain), plait.jit(invertible(plain))):
        close(grad(lambda x, g=g: (g(x) * 2.0).sum())(X), [2, 2, 2])
    assert called


@pytest.mark.feature("A16")
def test_nothing_is_computed_twice_going_forward():
    rev = rev_block(lambda x: lax.sin(x), lambda x: lax.cos(x))
    for f in (rev, invertible(block), lambda a, b: plait.jit(invertible(block))(a, b)):
        g = lambda a, b, s, t, f=f: jvp(f, (a, b), (s, t))  # noqa: E731
        program = plait.make_program(g)(X, X, X, X)
        names = equations(
            plait.ext.simplify(program) if hasattr(plait.ext, "simplify") else program
        )
        assert names.count("core.sin") <= 2 and names.count("core.cos") <= 2  # with derivatives
        out, dot = plait.jit(g)(X, X + 1, X, X)
        want, want_dot = jvp(block, (X, X + 1), (X, X))
        close(out, want)
        close(dot, want_dot)
        y, lin = linearize(f, X, X + 1)
        close(y, want)
        close(lin(X, X), want_dot)
        close(jacfwd(lambda a, f=f: f(a, X)[1])(X), jacfwd(lambda a: block(a, X)[1])(X))


@pytest.mark.feature("A17")
def test_errors():
    f = custom_ivjp(lambda x: x)
    with pytest.raises(
        AttributeError, match="the custom_ivjp function .* has no inverse VJP rule"
    ) as caught:
        f(1.0)
    assert isinstance(caught.value, UndefinedRule)
    assert "give it one before it is called: <lambda>.defivjp(...)" in str(caught.value)
    f.defivjp(lambda xs, y, dy: (xs, (dy,), None))
    with pytest.raises(TypeError, match="the custom ivjp of .* must return two trees"):
        grad(f)(1.0)
    f.defivjp(lambda xs, y, dy: (y, dy))
    with pytest.raises(TreeMismatch, match="returned arguments of structure"):
        grad(f)(1.0)
    f.defivjp(lambda xs, y, dy: ((y,), (dy, dy)))
    with pytest.raises(TreeMismatch, match="must return a tuple of 1 cotangents"):
        grad(plait.jit(lambda x: f(x)))(1.0)


@pytest.mark.feature("A17")
def test_rules_that_call_their_function():
    """A rule may use the function it serves."""
    f = custom_ivjp(lambda x: pnp.exp(x))

    @f.defivjp
    def _(xs, y, dy):
        x = pnp.log(y)
        return (x,), (dy * f(x),)

    x = np.float32(0.5)
    for g in (f, plait.jit(f), invertible(f)):
        close(grad(g)(x), np.exp(x))
        close(grad(grad(g))(x), np.exp(x))
    close(grad(invertible(lambda x: f(f(x)) * 2.0))(x), 2 * np.exp(np.exp(x) + x))


@pytest.mark.feature("A17")
def test_closing_over_values():
    """What it closes over is kept, with a warning; its gradient is right all the same."""

    def loss(k, x):
        return invertible(lambda x: pnp.exp(x) * k)(x).sum()

    with pytest.warns(UserWarning, match="Values that an @invertible function closes over"):
        gk, gx = grad(loss, (0, 1))(np.float32(3), X)
    close(gk, np.exp(X).sum())
    close(gx, 3 * np.exp(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        big = pnp.asarray(X)
        close(grad(lambda x: invertible(lambda x: x * big)(x).sum())(X), X)


WAYS = {
    "jit": plait.jit,
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    "while": lambda f: lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: lax.cond(x.sum() > -100, f, lambda y: y, x),
    "checkpoint": checkpoint,
    "twice": invertible,
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("way", WAYS)
def test_everywhere(way):
    """Under every transformation, to second order."""
    f, x = WAYS[way](invertible(product)), np.float32(0.7)
    close(f(x), product(x))
    close(grad(f)(x), 4 * np.exp(x) * (1 + x))
    close(jvp(f, (x,), (x,))[1], x * 4 * np.exp(x) * (1 + x))
    close(hessian(f)(x), 4 * np.exp(x) * (2 + x), 1e-4)
    close(grad(grad(f))(x), 4 * np.exp(x) * (2 + x), 1e-4)
    close(plait.jit(grad(lambda x: f(x) * x))(x), 4 * np.exp(x) * (2 * x + x * x), 1e-4)


UNDONE = {
    "neg": (lambda x: -x * 2.0, X),
    "log": (lambda x: pnp.log(x), X),
    "log1p": (lambda x: pnp.expm1(pnp.log1p(x)), X),
    "tanh": (lambda x: pnp.tanh(x), X),
    "arctanh": (lambda x: pnp.arctanh(x), X / 2),
    "sinh": (lambda x: pnp.arcsinh(pnp.sinh(x) * 2.0), X),
    "sqrt": (lambda x: pnp.sqrt(x), X),
    "sigmoid": (lambda x: plait.nn.sigmoid(x), X),
    "divided": (lambda x: 3.0 / x, X),
    "divided by": (lambda x: (x - 1.0) / 3.0, X),
    "moved": (lambda x: pnp.flip(x.reshape(3, 1).T, 1) * 2.0, X),
    "joined": (lambda x: pnp.concatenate([x[:, None], 2 * x[:, None]], 1), X),
    "padded": (lambda x: pnp.pad(x, (1, 2)), X),
    "repeated": (lambda x: pnp.broadcast_to(x[:, None], (3, 2)) * 2.0, X),
    "converted": (lambda x: x.astype("float64"), X),
    "square": (lambda x: x * x, X),
}


@pytest.mark.parametrize("name", UNDONE)
def test_rules(name):
    """What is recovered is what it was; what cannot be recovered is kept."""
    f, x = UNDONE[name]
    program = plait.make_program(f)(x)
    r = reverse(program, (True,))
    y = f(pnp.asarray(x))
    ct = pnp.asarray(np.cos(np.arange(y.size).reshape(y.shape)).astype(y.dtype))
    out = evaluate(r.program, [*([pnp.asarray(x)] if r.saved[0] else []), y, ct])
    if name not in ("square",):
        assert r.saved == (False,)
    if r.recovered[0]:
        close(out[0], x)
    close(out[-1], vjp(f, x)[1](ct)[0], 1e-4)


def test_complex_and_integer_values():
    def f(x, n):
        z = lax.complex(x, 2.0 * x) * (1 + 2j)
        return lax.real(z), lax.imag(z), (n + 1) - 3

    n = np.int32([1, 2, 3])
    g = invertible(f)
    loss = lambda f: lambda x: (f(x, n)[0] * f(x, n)[1]).sum()  # noqa: E731
    close(grad(loss(g))(X), grad(loss(f))(X))
    assert reverse(plait.make_program(lambda n: (n + 1) - 3)(n), (False,)).recovered == (True,)


# ---- memory ----------------------------------------------------------------------------------


def layer(x1, x2, p):
    w, b, v, c = p
    y1 = x1 + pnp.tanh(x2 @ w + b)
    return y1, x2 + pnp.tanh(y1 @ v + c)


def stacked(x1, x2, ps):
    return lax.scan(lambda c, p: (layer(*c, p), None), (x1, x2), ps)[0]


def unrolled(x1, x2, ps):
    for p in ps:
        x1, x2 = layer(x1, x2, p)
    return x1, x2


def parameters(depth, width=4):
    r = np.random.RandomState(0)
    shapes = (width, width), (width,), (width, width), (width,)
    return tuple([(r.randn(depth, *s) * 0.3).astype(np.float32) for s in shapes])


def loss_of(net):
    x = np.random.RandomState(1).randn(2, 512, 4).astype(np.float32)

    def loss(ps):
        a, b = net(x[0], x[1], ps)
        return (a * b).sum()

    return loss


@pytest.mark.sampled(6)
@pytest.mark.parametrize("net", [stacked, unrolled])
def test_memory_does_not_grow_with_depth(net):
    """Activations take the same memory at any depth; gradients are those of the plain network."""
    used, plain = [], []
    for depth in (4, 16, 64):
        ps = parameters(depth)
        ps = ps if net is stacked else list(zip(*ps))
        g = plait.jit(grad(loss_of(invertible(net))))
        used.append(g.lower(ps).compile().memory_analysis().temp_size_in_bytes)
        if depth < 64:
            f = plait.jit(grad(loss_of(net)))
            plain.append(f.lower(ps).compile().memory_analysis().temp_size_in_bytes)
            for got, want in zip(plait.tree.leaves(g(ps)), plait.tree.leaves(f(ps))):
                scale = np.abs(np.asarray(want)).max()
                np.testing.assert_allclose(got, want, atol=1e-5 * scale)
    assert max(used) <= 1.05 * min(used)
    assert plain[1] > 2.5 * plain[0] and used[0] < plain[0]


def test_lines_of_what_is_recovered():
    """Equations of a reversal have the lines of the equations that they reverse, also where the
    same derivative was made before for another line."""

    def first(x):
        return lax.exp(x) * 4.0

    def second(x):
        y = lax.exp(x)
        return y * 4.0

    for f, lines in ((first, [1, 1, 1]), (second, [2, 2, 1])):
        program = plait.make_program(grad(lambda x, f=f: invertible(f)(x).sum()))(X)
        names = [e.prim.name for e in program.eqns]
        after = program.eqns[names.index("core.barrier") + 1 :]
        assert [e.prim.name for e in after] == ["core.mul", "core.div", "core.mul"]
        start = f.__code__.co_firstlineno
        assert [user_line(e.where) for e in after] == [f"{__file__}:{start + n}" for n in lines]
