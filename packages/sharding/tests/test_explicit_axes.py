"""Explicit axes: what types say of results, and that the compiled program obeys.

The table was written down from jax 0.10.2 on eight devices: for each program the spec of its
result, or that it is an error.  Values are compared with numpy's, where numpy has the functions,
and with those of one device.
"""

import copy
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
import plait_sharding as sharding
from plait import ext, lax
from plait.errors import AxisError, TypeRule
from plait_sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    P,
    ShardingTypeError,
    auto_axes,
    explicit_axes,
    make_mesh,
    reshard,
    set_mesh,
    shard_map,
    use_mesh,
)
from plait_sharding.ext import entries_of, explicit_rules

PROGRAMS = [
    ('A((8, 4), "x", "y")*2+1', ("x", "y")),
    ('xp.sin(A((8, 4), "x", None))', ("x", None)),
    ('A((8, 4), "x", "y")+A((8, 4), "x", "y")', ("x", "y")),
    ('A((8, 4), "x", None)+A((8, 4), None, "y")', ("x", "y")),
    ('A((8, 4), "x", "y")+A((8, 4))', ("x", "y")),
    ('A((8, 8), "x", None)+A((8, 8), "y", None)', "error"),
    ('A((8, 8), ("x", "y"), None)+A((8, 8), "x", None)', "error"),
    ('A((8, 8), "x", None)+A((8, 8), None, "x")', "error"),
    ('A((8, 4), "x", "y")+A((4, ), "y")', ("x", "y")),
    ('A((8, 4), "x", "y")+A((4, ))', ("x", "y")),
    ('A((8, 4), "x", None)+A((4, ), "y")', ("x", "y")),
    ('A((8, 8), "x", "y")+A((8, ), "x")', "error"),
    ('A((8, 4), "x", "y")+xp.float32(2)', ("x", "y")),
    ('A((8, 4), "x", "y")+np.ones((8, 4), "float32")', ("x", "y")),
    ('A((8, ), "x")[:, None]*A((4, ), "y")[None, : ]', ("x", "y")),
    ('xp.where(A((8, 4), "x", None)>3, A((8, 4), "x", None), 0.)', ("x", None)),
    ('xp.where(A((8, 4), "x", None)>3, A((8, 4), None, "y"), 0.)', ("x", "y")),
    ('xp.where(A((8, 8), "x", None)>3, A((8, 8), "y", None), 0.)', "error"),
    ('xp.clip(A((8, 4), "x", None), 1., 3.)', ("x", None)),
    ('A((8, 4), "x", "y").astype("int32")', ("x", "y")),
    ('A((8, 4), "x", "y")**2', ("x", "y")),
    ('xp.maximum(A((8, 4), "x", None), A((8, 4), "x", None))', ("x", None)),
    ('A((8, 4), "x", None)<A((8, 4), "x", "y")', ("x", "y")),
    ('A((8, 4), "x", "y").sum(0)', ("y",)),
    ('A((8, 4), "x", "y").sum(1)', ("x",)),
    ('A((8, 4), "x", "y").sum()', ()),
    ('A((8, 4), "x", "y").sum(0, keepdims=True)', (None, "y")),
    ('A((8, 4), "x", "y").mean(0)', ("y",)),
    ('A((8, 4), "x", "y").max(1)', ("x",)),
    ('A((8, 4), "x", "y").prod(0)', ("y",)),
    ('(A((8, 4), "x", "y")>3).any(0)', ("y",)),
    ('xp.argmax(A((8, 4), "x", "y"), 0)', ("y",)),
    ('xp.argmax(A((8, 4), "x", "y"), 1)', ("x",)),
    ('xp.argmin(A((8, 4), None, "y"), 0)', ("y",)),
    ('lax.cumsum(A((8, 4), "x", "y"), 0)', "error"),
    ('lax.cumsum(A((8, 4), None, "y"), 0)', (None, "y")),
    ('lax.cummax(A((8, 4), None, "y"), 0)', (None, "y")),
    ('lax.cumprod(A((8, 4), "x", None), 0)', "error"),
    ('lax.cumlogsumexp(A((8, 4), "x", None), 1)', ("x", None)),
    ('lax.sort(A((8, 4), "x", "y"), dimension=0)', "error"),
    ('lax.sort(A((8, 4), "x", None), dimension=1)', ("x", None)),
    ('xp.argsort(A((8, 4), "x", None), 1)', ("x", None)),
    ('lax.top_k(A((8, 4), "x", None), 2)[0]', ("x", None)),
    ('lax.top_k(A((8, 4), None, "y"), 2)[0]', "error"),
    ('A((8, 4), "x", "y").T', ("y", "x")),
    ('xp.transpose(A((8, 4, 2), "x", "y", None), (2, 0, 1))', (None, "x", "y")),
    ('xp.swapaxes(A((8, 4, 2), "x", "y", None), 0, 2)', (None, "y", "x")),
    ('xp.moveaxis(A((8, 4, 2), "x", None, None), 0, -1)', (None, None, "x")),
    ('xp.expand_dims(A((8, 4), "x", "y"), 1)', ("x", None, "y")),
    ('lax.squeeze(A((8, 1, 4), "x", None, "y"), (1, ))', ("x", "y")),
    ('lax.rev(A((8, 4), "x", "y"), (0, ))', ("x", "y")),
    ('lax.rev(A((8, 4), "x", None), (1, ))', ("x", None)),
    ('lax.broadcast(A((8, ), "x"), (4, ))', (None, "x")),
    ('lax.broadcast_in_dim(A((8, ), "x"), (8, 4), (0, ))', ("x", None)),
    ('lax.broadcast_in_dim(A((8, 1), "x", None), (8, 4), (0, 1))', ("x", None)),
    ('xp.broadcast_to(A((4, ), "y"), (8, 4))', (None, "y")),
    ('lax.reshape(A((8, 4), "x", "y"), (32, ))', (("x", "y"),)),
    ('lax.reshape(A((8, 4), "x", None), (32, ))', ("x",)),
    ('lax.reshape(A((8, 4), None, "y"), (32, ))', "error"),
    ('lax.reshape(A((8, 4), "x", "y"), (2, 4, 4))', ("x", None, "y")),
    ('lax.reshape(A((8, 4), "x", "y"), (4, 2, 4))', ("x", None, "y")),
    ('lax.reshape(A((8, 4), "y", None), (2, 4, 4))', "error"),
    ('lax.reshape(A((8, 4), "y", None), (8, 2, 2))', ("y", None, None)),
    ('lax.reshape(A((8, 4), ("x", "y"), None), (2, 4, 4))', ("x", "y", None)),
    ('lax.reshape(A((16, 4), ("x", "y"), None), (8, 2, 4))', (("x", "y"), None, None)),
    ('lax.reshape(A((8, 4, 6), "x", "y", None), (8, 4, 2, 3))', ("x", "y", None, None)),
    ('lax.reshape(A((8, 4, 6), "x", None, None), (8, 24))', ("x", None)),
    ('lax.reshape(A((8, 4, 6), "x", "y", None), (8, 24))', ("x", "y")),
    ('lax.reshape(A((6, 8), None, "x"), (2, 3, 8))', (None, None, "x")),
    ('lax.reshape(A((8, 4), "x", None), (4, 8))', "error"),
    ("lax.reshape(A((8, 4)), (4, 8))", (None, None)),
    ('lax.reshape(A((8, 4), "x", "y"), (8, 1, 4))', ("x", None, "y")),
    ('lax.reshape(A((8, 4), "x", "y"), (1, 8, 4, 1))', (None, "x", "y", None)),
    ('lax.reshape(A((8, 1, 4), "x", None, "y"), (8, 4))', ("x", "y")),
    ("lax.reshape(A((1, 1)), ())", ()),
    ("A((8, 4)).ravel()", (None,)),
    ('lax.concatenate([A((8, 4), "x", "y"), A((8, 4), "x", "y")], 0)', ("x", "y")),
    ('lax.concatenate([A((8, 4), "x", None), A((8, 4), "x", None)], 1)', ("x", None)),
    ('lax.concatenate([A((8, 4), "x", None), A((8, 4), "y", None)], 1)', "error"),
    ("lax.concatenate([A((8, 4)), A((8, 4))], 1)", (None, None)),
    ('xp.stack([A((8, 4), "x", "y"), A((8, 4), "x", "y")])', (None, "x", "y")),
    ('lax.pad(A((8, 4), "x", None), 0., ((0, 0, 0), (1, 1, 0)))', ("x", None)),
    ('lax.pad(A((8, 4), "x", "y"), 0., ((1, 1, 0), (0, 0, 0)))', ("x", "y")),
    ('lax.pad(A((8, 4), "x", "y"), 0., ((0, 1, 0), (0, 0, 0)))', "error"),
    ('lax.slice(A((8, 4), "x", None), (0, 1), (8, 3))', ("x", None)),
    ('lax.slice(A((8, 4), "x", None), (0, 0), (4, 4))', ("x", None)),
    ('lax.slice(A((8, 4), "x", None), (0, 0), (3, 4))', "error"),
    ('lax.slice_in_dim(A((8, 4), "x", None), 0, 2, axis=1)', ("x", None)),
    ('xp.split(A((8, 4), "x", None), 2, 1)[0]', ("x", None)),
    ('lax.dynamic_slice(A((8, 4), "x", None), (0, 1), (8, 2))', ("x", None)),
    ('lax.dynamic_slice(A((8, 4), "x", None), (2, 1), (4, 2))', ("x", None)),
    ('lax.dynamic_slice(A((8, 4), "x", None), (2, 1), (3, 2))', "error"),
    ('lax.dynamic_update_slice(A((8, 4), "x", None), A((8, 2), "x", None), (0, 1))', ("x", None)),
    ('lax.dynamic_update_slice(A((8, 4), "x", None), A((4, 4), "x", None), (0, 0))', ("x", None)),
    ('A((8, 4), "x", None)[:, 1]', ("x",)),
    ('A((8, 4), "x", None)[1]', "error"),
    ('A((8, 4), None, "y")[xp.array([0, 2])]', (None, "y")),
    ('A((8, 4), "x", "y")[xp.array([0, 2])]', "error"),
    ('A((8, 4), "x", "y").at[xp.array([0, 2])].get(out_sharding=P(None, "y"))', (None, "y")),
    ('A((8, 4), "x", "y").at[AI((4, ), None)].get(out_sharding=P("x", None))', ("x", None)),
    ('A((8, 4), None, "y").at[0].set(1.)', (None, "y")),
    ('A((8, 4), "x", None).at[:, 0].add(1.)', ("x", None)),
    ('A((8, 4), None, "y").at[xp.array([0, 2])].add(A((2, 4), None, "y"))', (None, "y")),
    ('A((8, 4), "x", None)@A((4, 8), None, "y")', ("x", "y")),
    ('A((8, 4), "x", "y")@A((4, 8))', ("x", None)),
    ('A((8, 4))@A((4, 8), None, "y")', (None, "y")),
    ('A((8, 4), "x", "y")@A((4, 8), "y", None)', "error"),
    ('A((8, 8), None, "x")@A((8, 8), "y", None)', "error"),
    ('A((8, 4), "x", None)@A((4, 8), None, "x")', "error"),
    ('A((8, 4), "x", None)@A((4, ))', ("x",)),
    ("A((8, ))@A((8, ))", ()),
    ('A((8, ), "x")@A((8, ), "x")', "error"),
    (
        'xp.einsum("bij, bjk->bik", A((8, 4, 4), "x", None, None), A((8, 4, 4), "x", None, "y"))',
        ("x", None, "y"),
    ),
    ('xp.einsum("bij, bjk->bik", A((8, 4, 4), "x", None, None), A((8, 4, 4)))', ("x", None, None)),
    (
        'xp.einsum("bij, bjk->bik", A((8, 4, 4), "x", None, None), A((8, 4, 4), "y", None, None))',
        "error",
    ),
    (
        'xp.einsum("ij, jk->ik", A((8, 4), "x", "y"), A((4, 8), "y", None), '
        'out_sharding=P("x", None))',
        ("x", None),
    ),
    (
        'xp.einsum("ij, jk->ik", A((8, 4), "x", None), A((4, 8), None, "x"), '
        'out_sharding=P("x", None))',
        ("x", None),
    ),
    (
        'lax.dot_general(A((8, 4), "x", "y"), A((4, 8), "y", None), (((1, ), (0, )), '
        '((), ())), out_sharding=P(None, "y"))',
        (None, "y"),
    ),
    ('xp.matmul(A((8, 4), "x", "y"), A((4, 8), "y", None), out_sharding=P("x", "y"))', ("x", "y")),
    (
        'lax.conv_general_dilated(A((8, 2, 6), "x", None, None), A((4, 2, 3)), (1, ), "SAME")',
        ("x", None, None),
    ),
    (
        'lax.conv_general_dilated(A((8, 2, 8), None, None, "x"), A((4, 2, 3)), (1, ), "SAME")',
        (None, None, "x"),
    ),
    ("xp.linalg.cholesky(A((4, 4)) * 0 + 4 * xp.eye(4))", (None, None)),
    ('lax.linalg.cholesky(A((8, 8), "x", None), symmetrize_input=False)', "error"),
    ('lax.linalg.eigh(A((8, 8), "x", None), symmetrize_input=False)[1]', "error"),
    (
        'lax.linalg.triangular_solve(A((8, 4, 4), "x", None, None)+1, A((8, 4, 4), "x", '
        "None, None), left_side=True)",
        ("x", None, None),
    ),
    ('xp.fft.fft(A((8, 4), "x", None))', ("x", None)),
    ('J.nn.softmax(A((8, 4), "x", None))', ("x", None)),
    ('J.nn.softmax(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.nn.logsumexp(A((8, 4), "x", "y"), 1)', ("x",)),
    ('J.nn.relu(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.nn.one_hot(AI((8, ), "x"), 4)', ("x", None)),
    ('xp.zeros_like(A((8, 4), "x", "y"))', ("x", "y")),
    ('xp.full_like(A((8, 4), "x", "y"), 2.)', ("x", "y")),
    ('xp.zeros((8, 4), out_sharding=P("x", "y"))', ("x", "y")),
    ('xp.arange(8., out_sharding=P("x"))', ("x",)),
    ('lax.broadcasted_iota("int32", (8, 4), 0, out_sharding=P("x", None))', ("x", None)),
    ('xp.reshape(A((8, 4), "x", "y"), (4, 8), out_sharding=P("x", None))', ("x", None)),
    ('lax.broadcast_in_dim(A((8, )), (8, 4), (0, ), out_sharding=P("x", "y"))', ("x", "y")),
    ('sh.reshard(A((8, 4), "x", "y"), P("y", None))', ("y", None)),
    ('sh.reshard(A((8, 4), "x", "y"), P())', (None, None)),
    ('sh.reshard(A((8, 4), "x", "y"), P("z"))', "error"),
    ('sh.reshard(A((8, 4), "x", "y"), P("x", "y", None))', ("x", "y")),
    ('sh.reshard(A((6, 4)), P("y"))', "error"),
    ('sh.reshard({"a": A((8, 4), "x", "y"), "b": A((8, ))}, P("x"))["b"]', ("x",)),
    ('lax.scan(lambda c, r: (c+r, c*r), A((4, ), "y"), A((8, 4), None, "y"))[0]', ("y",)),
    ('lax.scan(lambda c, r: (c+r, c*r), A((4, ), "y"), A((8, 4), None, "y"))[1]', (None, "y")),
    ('lax.scan(lambda c, r: (c+r, r), A((4, )), A((8, 4), "x", None))[0]', "error"),
    ('lax.scan(lambda c, r: (c+r, r), A((4, )), A((8, 4), None, "y"))[0]', "error"),
    (
        'lax.scan(lambda c, _: (c*A((8, 4), "x", None), None), A((8, 4), "x", None), '
        "None, length=3)[0]",
        ("x", None),
    ),
    ('lax.cond(True, lambda a: a*1., lambda a: a*2., A((8, 4), "x", "y"))', ("x", "y")),
    (
        'lax.cond(True, lambda a: a*1., lambda a: sh.reshard(a, P("y", "x")), A((8, 4), "x", "y"))',
        "error",
    ),
    (
        'lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1]*2), (0, A((8, 4), "x", "y")))[1]',
        ("x", "y"),
    ),
    (
        'lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, sh.reshard(c[1], P("y", '
        '"x"))), (0, A((8, 4), "x", "y")))[1]',
        "error",
    ),
    ('lax.fori_loop(0, 3, lambda i, c: c*2, A((8, 4), "x", "y"))', ("x", "y")),
    ('J.jit(lambda a: a*2)(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.jit(lambda a, b: a@b)(A((8, 4), "x", None), A((4, 8), None, "y"))', ("x", "y")),
    ('J.jit(lambda a: J.jit(xp.sin)(a)+a)(A((8, 4), "x", "y"))', ("x", "y")),
    ('J.jit(lambda a: sh.reshard(a, P(None, "x")))(A((8, 4), "x", "y"))', (None, "x")),
    ('J.jit(lambda a, b: a+b)(A((8, 8), "x", None), A((8, 8), "y", None))', "error"),
    ('J.jit(lambda a: a.sum(0))(A((8, 4), "x", "y"))', ("y",)),
    (
        'sh.auto_axes(lambda a, b: a@b, out_sharding=P("x", None))(A((8, 4), "x", "y"), '
        'A((4, 8), "y", None))',
        ("x", None),
    ),
    (
        'J.jit(sh.auto_axes(lambda a, b: a@b, out_sharding=P("x", None)))(A((8, 4), "x", '
        '"y"), A((4, 8), "y", None))',
        ("x", None),
    ),
]
"""Programs whose results lie as jax says."""

OTHERS = [
    ('lax.dynamic_update_slice(A((8, 4), "x", None), A((8, 2)), (0, 1))', ("x", None), "error"),
    ('A((8, 4))[AI((4, ), "x")]', ("x", None), "error"),
    ('A((8, 4), None, "y")[AI((4, ), "x")]', ("x", "y"), "error"),
    ('A((8, 4), "x", None).at[0].set(1.)', ("x", None), "error"),
    (
        'lax.conv_general_dilated(A((8, 2, 6), "x", None, None), A((4, 2, 3), "y", None, '
        'None), (1, ), "SAME")',
        ("x", "y", None),
        "error",
    ),
    (
        'lax.linalg.cholesky(A((8, 4, 4), "x", None, None), symmetrize_input=False)',
        ("x", None, None),
        "error",
    ),
    (
        'lax.linalg.qr(A((8, 4, 4), "x", None, None), full_matrices=False)[1]',
        ("x", None, None),
        "error",
    ),
    ('xp.fft.fft(A((8, 4), None, "y"))', "error", (None, "y")),
]
"""Programs that differ: how ours lie, and what jax says."""


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def host(shape, dtype):
    n = np.arange(np.prod(shape))
    return (n % 7 + 1 if dtype == "float32" else n % 3).astype(dtype).reshape(shape)


def names():
    """What programs speak of: `A` and `AI` are arrays that lie so over the mesh in context."""
    return {
        "A": lambda shape, *spec: plait.device_put(host(shape, "float32"), P(*spec)),
        "AI": lambda shape, *spec: plait.device_put(host(shape, "int32"), P(*spec)),
        "xp": pnp, "lax": lax, "J": plait, "sh": sharding, "P": P, "np": np,
    }  # fmt: skip


def entries(sharding, ndim):
    found = tuple(sharding.spec)
    return (*found, *[None] * (ndim - len(found)))


def of_numpy(source):
    """What numpy says, if the program is one of numpy's."""
    if any(w in source for w in ("lax.", "J.", "sh.", "P(", "xp.array", ".at", "AI(")):
        return None
    A = lambda shape, *spec: host(shape, "float32")  # noqa: E731, N806
    return np.asarray(eval(source, {"A": A, "xp": np, "np": np}))


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("source", "spec"), PROGRAMS + [row[:2] for row in OTHERS])
def test_results(source, spec, mesh, close):
    with use_mesh(mesh):
        if spec == "error":
            with pytest.raises((TypeRule, AxisError)) as e:
                eval(source, names())
            assert e.value.fix and e.value.where
            return
        out = eval(source, names())
        assert entries(plait.typeof(out).sharding, out.ndim) == spec
        assert entries(out.sharding, out.ndim) == spec  # and so it is
        # traced, types say the same
        traced = plait.eval_shape(lambda: eval(source, names()))
        assert entries(traced.sharding, out.ndim) == spec
    want = of_numpy(source)
    if want is None:
        with use_mesh(make_mesh((1, 1), ("x", "y"), axis_types=AxisType.Explicit)):
            want = eval(source, names())
    close(out, want)


# ---- programs that are compiled ------------------------------------------------------------


def seen(x, into):
    """Notes what the type of a traced value says."""
    into.append(entries(plait.typeof(x).sharding, x.ndim))
    return x


def test_the_compiled_program_obeys(mesh, close):
    x = host((8, 8), "float32")
    inside = []

    def f(a, b):
        c = seen(a @ b, inside)
        return c, reshard(c * 2, P(None, "x")), seen(c.sum(0), inside)

    with use_mesh(mesh):
        a, b = plait.device_put((x, x), (P("x", None), P(None, "y")))
        out = plait.jit(f)(a, b)
        assert inside == [("x", "y"), ("y",)]
        assert [entries(v.sharding, v.ndim) for v in out] == [("x", "y"), (None, "x"), ("y",)]
        compiled = plait.jit(f).lower(a, b).compile()
        assert [entries(s, 1)[:1] for s in compiled.output_shardings] == [("x",), (None,), ("y",)]
    for got, want in zip(out, (x @ x, 2 * (x @ x), (x @ x).sum(0))):
        close(got, want)


def test_sums_over_a_divided_axis_are_one_sum_over_devices(mesh):
    with use_mesh(mesh):
        x = plait.device_put(host((8, 4), "float32"), P("x", None))
        text = plait.jit(lambda a: (a * 2).sum(0)).lower(x).compile().as_text()
    assert "all-reduce" in text and "all-gather" not in text


def test_each_mesh_has_a_trace_of_its_own(mesh):
    traces = []

    @plait.jit
    def f(x):
        traces.append(repr(plait.typeof(x)))
        return x + 1

    auto = make_mesh((2, 4), ("x", "y"))
    x = host((8, 4), "float32")
    for m in (mesh, auto, mesh):
        f(plait.device_put(x, NamedSharding(m, P("x", "y"))))
    f(plait.device_put(x, NamedSharding(mesh, P("x"))))
    assert traces == ["f32[8@x,4@y]", "f32[8,4]", "f32[8@x,4]"]


def test_jit_brings_arguments_and_results(mesh, close):
    inside = []
    with use_mesh(mesh):
        f = plait.jit(
            lambda a: seen(a, inside) * 2, in_shardings=P("y"), out_shardings=P(None, "x")
        )
        out = f(host((8, 4), "float32"))
        assert inside == [("y", None)] and entries(out.sharding, 2) == (None, "x")
    close(out, 2 * host((8, 4), "float32"))


def test_shapes_say_where_they_are(mesh, told):
    shape = plait.ShapeDtypeStruct((8, 4), "float32", sharding=NamedSharding(mesh, P("x")))
    out = plait.eval_shape(lambda a: a.T, shape)
    assert out.sharding == NamedSharding(mesh, P(None, "x"))
    assert plait.ShapeDtypeStruct((8, 4), "float32") != shape
    lowered = plait.jit(lambda a: a.T).lower(shape)
    assert lowered.compile().output_shardings == NamedSharding(mesh, P(None, "x"))
    with use_mesh(mesh):
        alone = plait.ShapeDtypeStruct((8, 4), "float32", sharding=P("x"))
        assert plait.eval_shape(lambda a: a, alone).sharding == NamedSharding(mesh, P("x"))
    uneven = plait.ShapeDtypeStruct((6, 4), "float32", sharding=NamedSharding(mesh, P("y")))
    told(lambda: plait.eval_shape(lambda a, b: b, 1.0, uneven), "4 equal pieces", "argument[1]")


# ---- other axes beside them ----------------------------------------------------------------


def test_over_axes_that_are_auto_the_compiler_divides(close):
    mixed = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = host((8, 4), "float32")
    a = plait.device_put(x, NamedSharding(mixed, P("x", "y")))
    assert repr(plait.typeof(a)) == "f32[8@x,4]"
    out = plait.jit(lambda v: v * 2)(a)
    assert entries(out.sharding, 2) == ("x", "y")  # as the compiler went on
    close(out, 2 * x)
    both = plait.jit(lambda v: plait.with_sharding_constraint(v, NamedSharding(mixed, P("x"))))(a)
    assert entries(plait.typeof(both).sharding, 2) == ("x", None)


def test_shard_map_over_one_axis_with_another_explicit(mesh, close):
    x = host((8, 4), "float32")
    inside = []

    def piece(v):
        seen(v, inside)
        return lax.psum(v.sum(0), "x")

    with use_mesh(mesh):
        a = plait.device_put(x, P("x", "y"))
        f = shard_map(piece, in_specs=P("x"), out_specs=P(), axis_names={"x"})
        for g in (f, plait.jit(f)):
            out = g(a)
            assert entries(plait.typeof(out).sharding, 1) == entries(out.sharding, 1) == ("y",)
            close(out, x.sum(0))
        assert inside == [(None, "y")]  # traced once
        back = shard_map(lambda v: v * 2, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(a)
        assert entries(plait.typeof(back).sharding, 2) == ("x", "y")
        whole = shard_map(lambda v: v * 2, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)
        assert entries(plait.typeof(whole).sharding, 2) == ("x", "y")
    close(back, 2 * x)
    close(whole, 2 * x)


def test_shard_map_and_other_divisions(mesh, close, told):
    x = host((8, 8), "float32")
    over = lambda f, *spec: shard_map(  # noqa: E731
        f, in_specs=P(*spec), out_specs=P(*spec), axis_names={"x"}
    )
    with use_mesh(mesh):
        rows = plait.device_put(x, P("x", None))
        other = over(lambda v: v * 2, None, "x")(rows)  # brought where in_specs say
        assert entries(plait.typeof(other).sharding, 2) == (None, "x")
        inner = over(lambda v: reshard(v, P("y")) * 2, "x")(rows)
        assert entries(plait.typeof(inner).sharding, 2) == (("x", "y"), None)
        nested = shard_map(
            lambda v: shard_map(
                lambda w: w * 2, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
            )(v),
            in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
        )(plait.device_put(x, P("x", "y")))  # fmt: skip
        assert entries(plait.typeof(nested).sharding, 2) == ("x", "y")
        told(lambda: over(lambda v: reshard(v, P("x")), "x")(rows), "'x'", "is Manual", "out_specs")
        columns = plait.device_put(x[:, :4], P(None, "y"))
        told(lambda: over(lambda v: v, None, "x")(columns), "`v` of type f32[8,4@y]", "pieces")
    for got in (other, inner, nested):
        close(got, 2 * x)


@pytest.mark.parametrize("axis_names", [None, {"x"}, {"y"}])
@pytest.mark.parametrize(
    "entries_", [(), ("x",), ("y", "x"), (None, "y"), (("x", "y"),), ("x", "y")]
)
def test_shard_map_without_in_specs(mesh, close, entries_, axis_names):
    """Arguments are divided as their types say, over the axes that are divided by hand."""
    x, over = host((8, 8), "float32"), axis_names or {"x", "y"}
    spec = [(n,) if isinstance(n, str) else n or () for n in (*entries_, (), ())[:2]]
    spec = [tuple([n for n in names if n in over]) for names in spec]
    sizes = [int(np.prod([mesh.shape[n] for n in names], dtype=int)) for names in spec]
    inside = []

    def piece(v, tree):
        inside.append((v.shape, tree["n"].shape))
        return v * tree["n"]

    with use_mesh(mesh):
        a = plait.device_put(x, P(*entries_))
        f = shard_map(piece, out_specs=P(*spec), axis_names=axis_names)
        for g in (f, plait.jit(f)):
            close(g(a, {"n": np.float32(2)}), 2 * x)
    assert set(inside) == {((8 // sizes[0], 8 // sizes[1]), ())}


def test_shard_map_without_in_specs_needs_explicit_axes(told):
    half = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = host((8, 4), "float32")
    with use_mesh(half):
        a = plait.device_put(x, P("x"))
        told(lambda: shard_map(lambda v: v, out_specs=P("x"))(a), "in_specs", "'y'", "P()")
        out = shard_map(lambda v: v * 2, out_specs=P("x"), axis_names={"x"})(a)
    assert np.array_equal(out, 2 * x)


def test_auto_axes(mesh, close, told):
    x = host((8, 8), "float32")
    with use_mesh(mesh):
        a = plait.device_put(x, P("x", "y"))
        inside = []

        def product(v, w):
            inside.append((repr(plait.typeof(v)), plait.sharding.get_mesh().axis_types))
            return {"out": v @ w}

        f = auto_axes(product, out_sharding=P("x", None))
        for g in (f, plait.jit(f)):
            out = g(a, a)["out"]
            kinds = (AxisType.Auto,) * 2
            assert inside.pop() == ("f32[8,8]", kinds)
            assert entries(plait.typeof(out).sharding, 2) == entries(out.sharding, 2) == ("x", None)
            close(out, x @ x)
        out = auto_axes(product, axes="y")(
            a, a[:, :4].T.T @ reshard(a, P())[:4], out_sharding=P("x")
        )
        assert inside.pop() == ("f32[8@x,8]", (AxisType.Explicit, AxisType.Auto))
        told(lambda: auto_axes(product)(a, a), "how results are divided")
        told(lambda: auto_axes(product, axes="z", out_sharding=P())(a, a), "'z'")


def test_explicit_axes(close, told):
    x = host((8, 4), "float32")
    inside = []
    with use_mesh(make_mesh((2, 4), ("x", "y"))):
        a = plait.device_put(x, P("x", "y"))
        assert plait.typeof(a).sharding is None
        f = explicit_axes(lambda v: seen(v, inside) * 2, in_sharding=P("x", "y"))
        for g in (f, plait.jit(f)):
            out = g(a)
            assert inside.pop() == ("x", "y") and plait.typeof(out).sharding is None
            close(out, 2 * x)
        told(lambda: explicit_axes(lambda v: v)(a), "how arguments are divided")
    told(lambda: explicit_axes(lambda v: v, in_sharding=P("x"))(x), "no", "mesh")


# ---- mistakes ------------------------------------------------------------------------------


def test_mistakes_name_both_specs(mesh, told):
    with use_mesh(mesh):
        a, b = plait.device_put((host((8, 8), "float32"),) * 2, (P("x", None), P("y", None)))
        kind = ShardingTypeError
        told(lambda: a + b, "P('x', None) and P('y', None)", "axis 0", kind=kind)
        told(lambda: plait.jit(lambda v, w: v * w)(a, b), "P('x', None) and P('y'", kind=kind)
        told(lambda: a + a.T, "divided over 'x' twice", kind=kind)
        told(lambda: a.T @ a, "summed over, over 'x'", kind=kind)
        told(lambda: a[:3], "shape (3, 8)", "2 equal pieces", kind=kind)
        told(lambda: lax.cumsum(a, 0), "goes along axis 0", kind=kind)
        told(lambda: lax.scan(lambda c, r: (c, r), 0.0, a), "leading axis of xs", "f32[8@x,8]")
        told(
            lambda: lax.cond(True, lambda v: v, lambda v: reshard(v, P("y")), a),
            "f32[8@x,8]", "f32[8@y,8]",
        )  # fmt: skip
        told(
            lambda: lax.fori_loop(0, 2, lambda i, v: reshard(v, P("y")), a),
            "comes in as f32[8@x,8]", "goes out as f32[8@y,8]",
        )  # fmt: skip
        told(lambda: reshard(a, P("z")), "'z'")
        told(lambda: reshard(a, P("x", None, "y")), "3 entries", "2 axes")
        told(lambda: reshard(a, P(P.UNCONSTRAINED)), "leaves an axis to the compiler")
        told(lambda: reshard(a[:, :6], P(None, "y")), "4 equal pieces")
        other = NamedSharding(make_mesh((4, 2), ("x", "y"), axis_types=AxisType.Explicit), P("x"))
        told(lambda: a + plait.device_put(host((8, 8), "float32"), other), "two meshes", kind=kind)
    told(lambda: reshard(np.ones(4), P("x")), "no mesh")
    with use_mesh(make_mesh((8,), "x")):
        told(lambda: reshard(np.ones(8), P("x")), "is Auto")


@pytest.mark.parametrize("entries", [("x",), ("x", None), (None, "y"), (("x", "y"),), ()])
def test_types_have_an_entry_for_each_axis(entries, mesh):
    """However the operand's spec was written, and also after an equal type was made from another
    one: code that adds entries to it would otherwise divide another axis."""
    x = plait.device_put(np.zeros((8, 8, 8), np.float32), NamedSharding(mesh, P(*entries)))
    full = P(*entries, *[None] * (3 - len(entries)))
    seen = []

    @plait.jit
    def f(v):
        seen.extend(plait.typeof(y).sharding.spec for y in (v, v * 2, v.sum(2), v.T, v[None]))
        return v

    f(x)
    for given, rule in zip(
        seen,
        (full, full, P(*full[:2]), P(*full[::-1]), P(None, *full)),
        strict=True,
    ):
        assert tuple(given) == tuple(rule)
    assert plait.typeof(x).sharding.spec == full
    shape = plait.eval_shape(lambda v: v * 2, x)
    assert tuple(shape.sharding.spec) == tuple(full)


def test_nothing_is_said_where_all_axes_are_auto():
    with use_mesh(make_mesh((2, 4), ("x", "y"))):
        a, b = plait.device_put((host((8, 8), "float32"),) * 2, (P("x", None), P("y", None)))
        assert plait.typeof(a).sharding is None is plait.typeof(a + b).sharding
        assert "sharding." not in str(plait.make_program(lambda v, w: pnp.sin(v @ w))(a, b))
        np.testing.assert_allclose(a.T @ a + b, host((8, 8), "float32").T @ a + b)


def test_a_spec_without_names_in_an_auto_mesh_changes_nothing():
    with set_mesh(make_mesh((8,), ("x",))):
        x = plait.device_put(np.arange(8.0), P("x"))
        assert reshard(x, P()).sharding == x.sharding
        with pytest.raises(AxisError, match="is Auto"):
            reshard(x, P("x"))


@pytest.mark.parametrize("run", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_values_stay_divided_where_an_axis_becomes_auto(run, close):
    """Nothing is gathered where the type of an axis changes, into such a function or out of it."""
    value = np.arange(32, dtype=np.float32).reshape(8, 4)
    kinds = (AxisType.Explicit, AxisType.Auto)
    with set_mesh(make_mesh((2, 4), ("x", "y"), kinds)):
        f = explicit_axes(lambda v: pnp.sin(v) * 2, axes="y", in_sharding=P("x", "y"))
        out = run(f)(plait.device_put(value, P("x", "y")))
        assert out.sharding.spec == P("x", "y") and plait.typeof(out).sharding.spec == P("x", None)
        close(out, np.sin(value) * 2)
        lowered = plait.jit(f).lower(plait.device_put(value, P("x", "y"))).compile()
        assert not lowered.collectives()
    with set_mesh(make_mesh((2, 4), ("x", "y"), AxisType.Explicit)):
        g = auto_axes(lambda v: v * 2, axes="y", out_sharding=P("x", "y"))
        x = plait.device_put(value, P("x", "y"))
        out = run(g)(x)
        assert out.sharding == x.sharding
        close(out, value * 2)
        assert not plait.jit(g).lower(x).compile().collectives()


def test_axes_in_context_may_get_other_types():
    """`use_abstract_mesh` with other types of the same axes keeps the devices of the mesh."""
    back = sharding.Mesh(np.arange(8)[::-1], ("x",), AxisType.Explicit)
    for kinds in (AxisType.Auto, AxisType.Explicit):
        with set_mesh(back), sharding.use_abstract_mesh(AbstractMesh((8,), ("x",), kinds)):
            assert sharding.get_mesh() == sharding.Mesh(np.arange(8)[::-1], ("x",), kinds)


def test_what_is_made_of_nothing_gives_way(mesh):
    with use_mesh(mesh):
        a = plait.device_put(host((8, 4), "float32"), P("x", "y"))
        assert plait.typeof(pnp.zeros((8, 4))).sharding is None
        assert entries(plait.typeof(pnp.zeros((8, 4)) + a).sharding, 2) == ("x", "y")
        grown = lax.fori_loop(0, 2, lambda i, c: c + a, pnp.zeros((8, 4)))
        assert entries(plait.typeof(grown).sharding, 2) == ("x", "y")


# ---- operations of others ------------------------------------------------------------------


def test_a_primitive_without_a_rule(mesh, told):
    @ext.ir.primitive("explicit_test.twice")
    def twice(x):
        """Twice `x`."""
        return x

    @ext.rules.lower_rules.rule(twice)
    def _(e, xs, ins, outs):
        return e.op("stablehlo.add", [xs[0], xs[0]], outs[0])

    with use_mesh(mesh):
        a = plait.device_put(host((8, 4), "float32"), P("x", "y"))
        told(lambda: twice(a), "no rule of the table 'explicit'", "f32[8@x,4@y]")
        whole = twice(reshard(a, P()))  # nothing has to be known of what is not divided
        assert entries(plait.typeof(whole).sharding, 2) == (None, None)
        out = auto_axes(twice, out_sharding=P("x", "y"))(a)
        np.testing.assert_allclose(out, 2 * host((8, 4), "float32"))

        @explicit_rules.rule(twice)
        def _(avals, outs):
            return entries_of(avals[0])

        assert entries(plait.typeof(twice(a * 1)).sharding, 2) == ("x", "y")


def test_a_primitive_that_expands(mesh):
    @ext.ir.primitive("explicit_test.turned")
    def turned(x):
        """The transpose."""
        return x.with_shape(x.shape[::-1])

    @ext.rules.expand_rules.rule(turned)
    def _(x):
        return pnp.transpose(x)

    with use_mesh(mesh):
        a = plait.device_put(host((8, 4), "float32"), P("x", "y"))
        out = turned(a)
        assert entries(plait.typeof(out).sharding, 2) == entries(out.sharding, 2) == ("y", "x")
        np.testing.assert_array_equal(out, host((8, 4), "float32").T)


# ---- random numbers, keys, types as values -------------------------------------------------


def test_random_numbers(mesh):
    with use_mesh(mesh):
        key = plait.random.key(3)
        want = np.asarray(plait.random.normal(key, (8, 4)))
        out = plait.random.normal(key, (8, 4), out_sharding=P("x", "y"))
        assert entries(plait.typeof(out).sharding, 2) == entries(out.sharding, 2) == ("x", "y")
        np.testing.assert_array_equal(out, want)
        keys = reshard(plait.random.split(key, 8), P("x"))
        assert entries(plait.typeof(keys).sharding, 1) == ("x",)
        plain = np.asarray(plait.random.bits(key, (8,)))
        np.testing.assert_array_equal(plait.random.bits(key, (8,), out_sharding=P("x")), plain)


def test_types_are_values(mesh):
    with use_mesh(mesh):
        t = plait.typeof(plait.device_put(host((8, 4), "float32"), P("x", "y")))
    assert pickle.loads(pickle.dumps(t)) is t is copy.deepcopy(t)
    assert t.with_sharding(None) is plait.typeof(pnp.zeros((8, 4)))
    assert t.update(dtype="int32").sharding == t.sharding and t.update(shape=(8,)).sharding is None
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    assert mesh != make_mesh((2, 4), ("x", "y")) == mesh.untyped


def test_types_are_made_by_hand(mesh, told):
    rows = NamedSharding(mesh, P("x"))
    assert repr(plait.typeof(pnp.ones((8, 4))).update(sharding=rows)) == "f32[8@x,4]"
    assert repr(ext.types.Aval((8, 4), "float32", sharding=rows)) == "f32[8@x,4]"
    told(lambda: ext.types.Aval((7, 4), "float32", sharding=rows), "2 equal pieces")
    auto = NamedSharding(make_mesh((8,), "x"), P("x"))
    told(lambda: ext.types.Aval((8,), "float32", sharding=auto), "explicit axes")


def test_texts_of_programs(mesh, told):
    with use_mesh(mesh):
        a = plait.device_put(host((8, 4), "float32"), P("x", "y"))
        text = str(plait.make_program(lambda v: v.sum(0))(a))
    assert "f32[8@x,4@y]" in text and "f32[4@y]" in text
    told(lambda: plait.text.parse(text), "f32[8@x,4@y]", "which a text does not have")


MORE = {
    "det": (lambda a: pnp.linalg.det(a), np.linalg.det, (8, 4, 4), ("x",)),
    "inv": (lambda a: pnp.linalg.inv(a), np.linalg.inv, (8, 4, 4), ("x", None, None)),
    "svd": (lambda a: pnp.linalg.svd(a)[1], lambda a: np.linalg.svd(a)[1], (8, 4, 4), ("x", None)),
    "median": (lambda a: pnp.median(a, 1), lambda a: np.median(a, 1), (8, 5), ("x",)),
    "norm": (lambda a: pnp.linalg.norm(a, axis=1), lambda a: np.linalg.norm(a, axis=1), (8, 5),
             ("x",)),
    "tile": (lambda a: pnp.tile(a, (1, 2)), lambda a: np.tile(a, (1, 2)), (8, 5), ("x", None)),
    "roll": (lambda a: pnp.roll(a, 1, 1), lambda a: np.roll(a, 1, 1), (8, 5), ("x", None)),
    "bits": (lambda a: lax.bitcast_convert_type(a, "int32"), lambda a: a.view("int32"), (8, 5),
             ("x", None)),
    "pool": (lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 2), (1, 2), "VALID"),
             lambda a: a.reshape(8, 3, 2).sum(2), (8, 6), ("x", None)),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_more_functions_by_what_they_are_made_of(name, mesh, close):
    f, of_numpy, shape, spec = MORE[name]
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    with use_mesh(mesh):
        out = plait.jit(f)(plait.device_put(x, P("x")))
        assert entries(plait.typeof(out).sharding, out.ndim) == spec
        assert entries(out.sharding, out.ndim) == spec
    close(out, of_numpy(x))


def test_set_mesh_for_good(mesh):
    set_mesh(mesh)
    try:
        assert plait.sharding.get_abstract_mesh().explicit_axes == ("x", "y")
        assert entries(plait.typeof(reshard(host((8,), "float32"), P("y"))).sharding, 1) == ("y",)
    finally:
        set_mesh(None)
