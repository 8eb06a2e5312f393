"""Transformations make no reference cycles: what they close lets go of arrays at once.

Python's collector counts objects, and not the bytes of devices: arrays in a cycle fill memory long
before it runs.

Invariant: the collector is off while a call runs.  Whatever it finds afterwards was in a cycle.
"""

import gc
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import checks, lax
from plait.checks import checkify
from plait.sharding import PartitionSpec as P

pnp = plait.numpy
X = pnp.asarray(np.linspace(0.1, 1, 6, dtype=np.float32))
ROWS = pnp.asarray(np.linspace(0.1, 1, 12, dtype=np.float32).reshape(2, 6))


pytestmark = pytest.mark.filterwarnings("ignore::plait.errors.RuleLost")


class OnPurpose(Exception):
    pass


def garbage(call):
    """The objects in cycles after a call, which may raise."""
    gc.disable()
    gc.freeze()  # older objects are not searched, which would take longer than most calls
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        with suppress(OnPurpose, plait.PlaitError):
            call()
        gc.collect()
        return [type(x).__name__ for x in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def leaves_nothing(call):
    """Assert that a call, after a first one, leaves nothing in a cycle."""
    with suppress(OnPurpose, plait.PlaitError):
        call()  # fills caches
    assert garbage(call) == []


# ---- functions -------------------------------------------------------------------------------


@plait.custom_jvp
def with_jvp(x):
    return lax.sin(x) * x


with_jvp.defjvp(lambda p, t: (with_jvp(p[0]), t[0] * lax.cos(p[0])))


@plait.custom_vjp
def with_vjp(x):
    return lax.sin(x) * x


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, ct: (ct * lax.cos(x),))


@plait.custom_vmap
def with_vmap(x):
    return lax.sin(x) * x


with_vmap.def_vmap(lambda size, batched, x: (with_vmap(x), batched[0]))


def of_reference(x):
    ref = plait.new_ref(x)
    ref[...] = ref[...] * 2.0
    return ref[...].sum()


def raises(x):
    lax.sin(x)
    raise OnPurpose


FUNCTIONS = {
    "plain": lambda x: (lax.sin(x) * x).sum(),
    "jitted": plait.jit(lambda x: (lax.sin(x) * x).sum()),
    "checkpoint": plait.checkpoint(lambda x: (lax.sin(x) * x).sum()),
    "branch of Python": lambda x: x.sum() if x[0] > 0 else x.prod(),
    "scan": lambda x: lax.scan(lambda c, _: (lax.sin(c) * x, None), x, None, length=3)[0].sum(),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * lax.sin(x), x).sum(),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: (y * y).sum(), lambda y: y.sum(), x),
    "custom_jvp": lambda x: with_jvp(x).sum(),
    "custom_vjp": lambda x: with_vjp(x).sum(),
    "custom_vjp in scan": lambda x: lax.scan(lambda c, _: (with_vjp(c), None), x, None, length=2)[
        0
    ].sum(),
    "custom_vmap": lambda x: with_vmap(x).sum(),
    "implicit": lambda x: lax.custom_root(
        lambda y: y * y - x[0], x[0], lambda f, y: lax.sqrt(x[0]), lambda g, y: y / g(1.0)
    ),
    "reference": of_reference,
    "checks": lambda x: checks.check(x[0] > 0, "negative") or x.sum(),
    "exception": raises,
}
TRANSFORMED = {
    "eager": lambda f: f(X),
    "grad": lambda f: plait.grad(f)(X),
    "vjp, never pulled": lambda f: plait.vjp(f, X),
    "vjp": lambda f: plait.vjp(f, X)[1](1.0),
    "jvp": lambda f: plait.jvp(f, (X,), (X,)),
    "linearize": lambda f: plait.linearize(f, X)[1](X),
    "vmap": lambda f: plait.vmap(f)(ROWS),
    "vmap in chunks": lambda f: plait.vmap(f, chunk=1)(ROWS),
    "vmap of grad": lambda f: plait.vmap(plait.grad(f))(ROWS),
    "grad of vmap": lambda f: plait.grad(lambda xs: plait.vmap(f)(xs).sum())(ROWS),
    "grad of grad": lambda f: plait.grad(lambda x: plait.grad(f)(x).sum())(X),
    "hessian": lambda f: plait.hessian(f)(X),
    "hvp": lambda f: plait.hvp(f, (X,), (X,)),
    "jet": lambda f: plait.jet(f, (X,), ((X, X),)),
    "laplacian": lambda f: plait.fwd_laplacian(f, (X,)),
    "checkpoint": lambda f: plait.grad(plait.checkpoint(f))(X),
    "checkify": lambda f: checkify(f)(X),
    "fresh jit": lambda f: plait.jit(lambda x: f(x))(X),
    "fresh jit of grad": lambda f: plait.jit(plait.grad(lambda x: f(x)))(X),
    "grad of fresh jit": lambda f: plait.grad(plait.jit(lambda x: f(x)))(X),
    "vmap of fresh jit": lambda f: plait.vmap(plait.jit(lambda x: f(x)))(ROWS),
    "eval_shape": lambda f: plait.eval_shape(f, X),
    "make_program": lambda f: str(plait.make_program(f)(X)),
    "op by op": lambda f: op_by_op(f),
}


def op_by_op(f):
    with plait.disable_jit():
        return plait.grad(f)(X)


SMALL = ("plain", "custom_vjp", "exception")
"""Functions that every session puts under every transformation; the others are sampled."""


@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("function", SMALL)
def test_transformations(function, how):
    """Nothing is left of a transformed function, whether it returns or raises."""
    leaves_nothing(lambda: TRANSFORMED[how](FUNCTIONS[function]))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f not in SMALL])
def test_functions(function, how):
    """Nor of functions with loops, branches, references and rules."""
    leaves_nothing(lambda: TRANSFORMED[how](FUNCTIONS[function]))


# ---- other calls -----------------------------------------------------------------------------


def sharded(x):
    mesh = plait.make_mesh((1,), ("d",))
    f = lambda x: lax.psum(lax.sin(x) * x, "d")  # noqa: E731
    return plait.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P())(x)


def ragged(sizes):
    return plait.vmap(lambda n: pnp.arange(n).sum())(sizes)


def piled(x):
    pile = plait.Pile.from_list([x[:2], x[:5]])
    return plait.vmap(lambda x: (x * x.shape[0] * X[0]).sum(), in_axes=plait.pile_axis)(pile)


CALLS = {
    "shard_map": lambda: sharded(X),
    "grad of shard_map": lambda: plait.grad(lambda x: sharded(x).sum())(X),
    "shard_map under jit": lambda: plait.jit(lambda x: sharded(x))(X),
    "sizes that differ": lambda: ragged(pnp.asarray([1, 2, 3])),
    "piles": lambda: piled(X),
    "grad of piles": lambda: plait.grad(lambda w: (w * piled(X)).sum())(1.0),
    "xmap": lambda: plait.xmap(lambda x: x * 2, in_axes=["a"], out_axes=["a"])(X),
    "export": lambda: plait.export.export(plait.jit(lambda x: lax.sin(x)))(X),
    "linear_transpose": lambda: plait.linear_transpose(lambda x: x * 3, X)(X),
    "while_loop": lambda: lax.while_loop(lambda x: x.sum() < 1e3, lambda x: x * 2, X),
    "grad of bounded loop": lambda: plait.grad(scanned)(X),
    "pure_callback": lambda: plait.pure_callback(np.sin, plait.ShapeDtypeStruct((6,), "f4"), X),
    "callback that raises": lambda: failing_callback(),
    "index and update": lambda: X[2:5].at[1].set(3.0),
    "wrong shapes": lambda: X + pnp.ones(5),
    "wrong shapes under jit": lambda: plait.jit(lambda x: x + pnp.ones(5))(X),
    "wrong prefix": lambda: plait.vmap(lambda x: x, in_axes=[(0, 1)])([X]),
    "escaped": lambda: escaping(),
    "key_paths": lambda: plait.tree_util.tree_leaves_with_path({"a": [X, (X,)]}),
    "sizes as text": lambda: str(plait.export.symbolic_shape("max(b, 3), b * b + mod(b, 4)")),
    "program as text": lambda: plait.text.show(plait.make_program(scanned)(X)),
    "sort with a key": lambda: pnp.sort(X)[::-1],
    "solve": lambda: pnp.linalg.solve(ROWS @ ROWS.T + pnp.eye(2), pnp.ones(2)),
    "grad of solve": lambda: plait.grad(
        lambda a: pnp.linalg.solve(a @ a.T + pnp.eye(2), pnp.ones(2)).sum()
    )(ROWS),
    "fft": lambda: pnp.fft.irfft(pnp.fft.rfft(X)),
    "einsum": lambda: pnp.einsum("ij,kj->ik", ROWS, ROWS),
    "random": lambda: plait.random.normal(plait.random.key(0), (3,)),
    "convolve": lambda: pnp.convolve(X, X),
    "associative_scan": lambda: lax.associative_scan(lax.add, X),
    "custom_linear_solve": lambda: plait.grad(cg)(X),
    "closure_convert": lambda: plait.closure_convert(lambda x: x * X, X),
    "map_axes": lambda: plait.map_axes(lambda x: x * 2)(ROWS),
    "interval": lambda: plait.interval(lambda x: x * x)(X, X),
    "named_scope": lambda: plait.named_call(lambda x: x * 2)(X),
    "saved_residuals": lambda: plait.saved_residuals(FUNCTIONS["plain"], X),
    "mixed_precision": lambda: plait.mixed_precision(FUNCTIONS["plain"])(X),
}


def scanned(x):
    return lax.scan(lambda c, _: (lax.sin(c) * x, None), x, None, length=3)[0].sum()


def cg(x):
    solve = lambda f, b: b / 2.0  # noqa: E731
    return lax.custom_linear_solve(lambda y: y * 2.0, x, solve, symmetric=True).sum()


def failing_callback():
    def fails(x):
        raise OnPurpose

    return plait.pure_callback(fails, plait.ShapeDtypeStruct((6,), "f4"), X)


def escaping():
    kept = []
    plait.grad(lambda x: kept.append(x) or x.sum())(X)
    return kept[0] + 1


@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    """Nothing is left of calls of each package, nor of those that are refused."""
    leaves_nothing(CALLS[call])


# ---- functions that refer to themselves ------------------------------------------------------


def recursive(code):
    """The nested functions below `code` that refer to themselves, also through each other."""
    nested = {}
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from recursive(c)
            nested.setdefault(c.co_name, []).append(c)
    names = set(nested) & set(code.co_cellvars)
    uses = {n: {u for c in nested[n] for u in c.co_freevars if u in names} for n in names}
    for name in names:
        seen, todo = set(), [*uses[name]]
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo += uses[n]
        if name in seen:
            yield f"{nested[name][0].co_qualname}, line {nested[name][0].co_firstlineno}"


SOURCES = sorted(Path(__file__).parents[2].glob("packages/*/src/**/*.py"))


def test_no_nested_recursion():
    """A nested function that calls itself is a cycle for each call of the function around it."""
    assert len(SOURCES) > 300
    found = [
        f"{path.name}: {r}"
        for path in SOURCES
        for r in recursive(compile(path.read_text(), path.name, "exec"))
    ]
    # These close over themselves once for each function that a module defines.
    of_modules = ("dispatched.<locals>", "_ordering.<locals>", "masked.<locals>", "binary.<locals>")
    assert [r for r in found if not any(f": {name}" in r for name in of_modules)] == []


def test_live_arrays():
    """Sixty gradients in a row hold the arrays of one call at most, with the collector off."""
    f = plait.grad(lambda x: (lax.sin(x) * x).sum())
    x = pnp.ones((1 << 10, 3))
    f(x)
    gc.collect()
    gc.disable()
    try:
        before = sum(a.shape == x.shape for a in plait.live_arrays())
        for _ in range(60):
            f(x)
        assert sum(a.shape == x.shape for a in plait.live_arrays()) <= before
    finally:
        gc.enable()
