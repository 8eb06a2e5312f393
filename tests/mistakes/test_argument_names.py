"""A message about one argument names it as the user's function does, with the path of the leaf.

Every transformation is given one bad leaf; its message must hold the leaf's name in backticks.

Invariant: the names are written by hand here, beside the arguments.
"""

import functools

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import PlaitError
from plait.sharding import PartitionSpec as P

X = np.float32([1, 2, 3])
BAD = object()


def two(state, params):
    return params["w"][0] * state


def many(first, *rest, scale=1.0):
    return first * rest[1]["w"] * scale


class Model:
    def __call__(self, state, params):
        return two(state, params)

    def method(self, state, params):
        return two(state, params)


BOUND = functools.partial(lambda lr, state, params: two(state, params), 0.1)
FUNCTIONS = {"def": two, "lambda": lambda state, params: two(state, params), "class": Model(),
             "method": Model().method, "partial": BOUND}  # fmt: skip
APPLIED = {
    "jit": plait.jit,
    "jit of jit": lambda f: plait.jit(lambda state, params: plait.jit(f)(state, params)),
    "jit of grad": lambda f: plait.jit(plait.grad(f)),
    "grad": lambda f: plait.grad(f, argnums=1),
    "value_and_grad": lambda f: plait.value_and_grad(f, argnums=(0, 1)),
    "jacfwd": lambda f: plait.jacfwd(f, argnums=1),
    "jacrev": lambda f: plait.jacrev(f, argnums=(1, 0)),
    "hessian": lambda f: plait.hessian(f, argnums=1),
    "vmap": plait.vmap,
    "eval_shape": lambda f: lambda *args: plait.eval_shape(f, *args),
    "make_program": plait.make_program,
    "lower": lambda f: plait.jit(f).lower,
    "checkpoint": plait.checkpoint,
}  # fmt: skip


def message(f, *args, **kwargs):
    with pytest.raises(PlaitError) as e:
        f(*args, **kwargs)
    return str(e.value)


PAIRS = [
    (applied, kind)
    for applied in APPLIED
    for kind in FUNCTIONS
    if applied == "jit" or kind == "def" or (len(applied) + len(kind)) % 3 == 0
]


@pytest.mark.parametrize(("applied", "kind"), PAIRS)
def test_what_is_not_an_array(applied, kind):
    said = message(APPLIED[applied](FUNCTIONS[kind]), X, {"w": [BAD]})
    assert "`params['w'][0]`" in said
    assert "type object" in said


@pytest.mark.parametrize("applied", ["jit", "make_program", "eval_shape"])
def test_variadic_and_named_arguments(applied):
    f = APPLIED[applied](many)
    assert "`rest[1]['w']`" in message(f, X, X, {"w": BAD})
    if applied != "eval_shape":
        assert "`scale`" in message(f, X, X, {"w": X}, scale=BAD)


def test_static_and_fixed_arguments_keep_their_positions():
    f = plait.jit(lambda n, state, params: two(state, params), static_argnums=0)
    assert "`params['w'][0]`" in message(f, 3, X, {"w": [BAD]})
    g = plait.jit(lambda n, cfg, x: x, static_argnums=(0, 1))
    assert "`cfg`" in message(g, 3, [1], X)


def test_functions_without_signature_count():
    assert "`args[0]`" in message(plait.jit(max), BAD)


def backwards(bwd):
    """A function of two arguments whose backward rule is `bwd`."""
    f = plait.custom_vjp(lambda s, p: s * p["w"])
    f.defvjp(lambda s, p: (s * p["w"], None), bwd)
    return f


def SHARDS(n):
    """A sharding of the first axis over `n` devices."""
    return plait.NamedSharding(plait.make_mesh((n,), ("d",)), P("d"))


MESH = lambda: plait.make_mesh((1,), ("d",))  # noqa: E731
CASES = {
    "vmap sizes": (
        lambda: plait.vmap(lambda params, x, y: x + y, in_axes=(None, 0, 0))(
            {}, np.ones((3, 2)), np.ones((4, 2))
        ),
        ("`x` has 3 at axis 0", "`y` has 4 at axis 0"),
    ),
    "vmap axis": (lambda: plait.vmap(lambda p, x: x)({"w": 1.0}, X), ("argument `p['w']`",)),
    "vmap tree": (
        lambda: plait.vmap(lambda p, x: x, in_axes=({"v": None}, 0))({"w": 1.0}, X), ("`p`",)),
    "vtile": (
        lambda: plait.vtile(lambda p, x: x, (None, 1))(X, {"w": X}), ("argument `x['w']`",)),
    "grad of integers": (
        lambda: plait.grad(lambda a, p: p["i"] * a, argnums=1)(1.0, {"i": 3}),
        ("argument `p['i']`",)),
    "jacrev of integers": (lambda: plait.jacrev(lambda i: i * 2)(np.arange(3)), ("`i`",)),
    "shard_map": (
        lambda: plait.shard_map(lambda tokens: tokens, mesh=MESH(), in_specs=P("d", None),
                                out_specs=P("d"))(X), ("`tokens`",)),
    "shard_map tree": (
        lambda: plait.shard_map(lambda a, b: a, mesh=MESH(), in_specs=(P("d"), {"w": P("d", None)}),
                                out_specs=P("d"))(X, {"w": X}), ("`b['w']`",)),
    "pmap": (
        lambda: plait.pmap(lambda p, x: x, in_axes=(0, 1))(X[:1], {"w": X[:1]}),
        ("argument `x['w']`",)),
    "donated": (
        lambda: (lambda x: plait.jit(lambda a, b: (a + 1, b), donate_argnums=0)(x, {"w": x}))(
            pnp.ones(3)), ("`a`", "`b['w']`")),
    "deleted": (
        lambda: (lambda x, f: (f(x), f(x)))(
            pnp.ones(3), plait.jit(lambda state: state + 1, donate_argnums=0)), ("`state`",)),
    "static list": (
        lambda: plait.jit(lambda x, cfg: x, static_argnums=1)(X, [1]), ("`cfg`",)),
    "compiled": (
        lambda: plait.jit(lambda s, p: s).lower(X, {"w": X}).compile()(X, {"w": X[:2]}),
        ("`p['w']`",)),
    "compiled with a static argument": (
        lambda: plait.jit(lambda n, s, p: s, static_argnums=0).lower(2, X, {"w": X}).compile()(
            X, {"w": X[:2]}), ("`p['w']`",)),
    "compiled with any number": (
        lambda: plait.jit(lambda s, *rest: s).lower(X, X, X).compile()(X, X, X[:2]),
        ("`rest[1]`",)),
    "in_shardings": (
        lambda: plait.jit(lambda s, p: s, in_shardings=(None, SHARDS(2)))(X, {"w": X}),
        ("`p['w']`",)),
    "in_shardings beside a static argument": (
        lambda: plait.jit(lambda n, s, p: s, in_shardings=(None, SHARDS(2)), static_argnums=0)(
            3, X, {"w": X}), ("`p['w']`",)),
    "in_shardings tree": (
        lambda: plait.jit(lambda s, p: s, in_shardings=(None, {"v": SHARDS(1)}))(X, {"w": X}),
        ("argument `p`",)),
    "in_shardings of shapes": (
        lambda: plait.jit(lambda s, p: s, in_shardings=(None, SHARDS(2))).lower(X, {"w": X}),
        ("`p['w']`",)),
    "cotangent of a custom rule": (
        lambda: plait.grad(lambda x: backwards(lambda r, ct: (ct, {"w": 1.0}))(x, {"w": X}).sum())(
            X), ("argument `p['w']`",)),
    "structure of a custom rule": (
        lambda: plait.grad(lambda x: backwards(lambda r, ct: (ct, {"v": ct}))(x, {"w": X}).sum())(
            X), ("than argument `p`",)),
    "scan rows": (
        lambda: lax.scan(lambda c, x: (c, None), 0.0, {"a": X, "b": X[:2]}),
        ("xs['a'] has 3", "xs['b'] has 2")),
    "scan init": (lambda: lax.scan(lambda c, x: (c, None), {"a": BAD}, X), ("`init['a']`",)),
    "scan xs": (lambda: lax.scan(lambda c, x: (c, None), 0.0, {"a": BAD}), ("`xs['a']`",)),
    "while init": (
        lambda: lax.while_loop(lambda c: True, lambda c: c, {"a": [BAD]}),
        ("`init_val['a'][0]`",)),
    "cond operand": (
        lambda: lax.cond(True, lambda s: s, lambda s: s, {"w": BAD}), ("`s['w']`",)),
    "jvp": (
        lambda: plait.jvp(lambda a, p: a, (X, {"w": X}), (X, {"w": X[:2]})), ("`p['w']`",)),
    "vjp": (lambda: plait.vjp(lambda a, p: a, X, {"w": 3 * X, "n": BAD}), ("`p['n']`",)),
    "linearize": (lambda: plait.linearize(lambda a, p: a, X, {"n": BAD}), ("`p['n']`",)),
    "custom": (
        lambda: plait.custom_vmap(lambda a, p: a)(X, {"n": BAD}), ("`p['n']`",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_argument_is_named(name):
    run, wanted = CASES[name]
    said = message(run)
    for words in wanted:
        assert words in said, said
