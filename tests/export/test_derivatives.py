"""Derivatives in artifacts: of functions just exported, and of what was saved with them.

Invariant: results are compared with formulas in numpy, with finite differences, or with what a
custom rule says, which is nobody's derivative.
"""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.errors import PlaitError
from plait.ext.errors import ArgumentError, MissingRule
from plait.ext.lower import attr, lock, mlir
from plait_export import (
    ArtifactError,
    NotExportable,
    container,
    deserialize,
    export,
    symbolic_args_specs,
)
from plait_export.constants import HELD
from plait_export.portable import artifact_of, operations, parsed

F32 = np.float32
X = np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3)
W = np.random.default_rng(0).normal(size=(3, 200)).astype(F32)
NONE = np.zeros((), plait.float0)


def both(f, *types, order=2, **how):
    """The function exported, and saved with its derivatives and read."""
    exported = export(f, **how)(*types)
    return exported, deserialize(exported.serialize(vjp_order=order))


def slopes(f, x, h=1e-6):
    """The gradient of a sum, by central differences in double precision."""
    x = np.asarray(x, np.float64)
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        d = np.zeros_like(x)
        d[i] = h
        out[i] = (np.sum(f(x + d)) - np.sum(f(x - d))) / (2 * h)
    return out


# ---- its types, and what it computes -------------------------------------------------------


@pytest.mark.feature("E14")
def test_cotangents_have_the_types_of_tangents():
    def f(d, n, *, k):
        return {"y": pnp.sin(d["x"]) * n, "i": n + 1, "b": d["x"] > 0}, k * 2

    d, n, k = {"x": X[0]}, np.int32(3), F32(2)
    exported = export(f)(d, n, k=k)
    for e in (exported, deserialize(exported.serialize(vjp_order=2))):
        v = e.vjp()
        assert repr(v) == (
            "<Exported vjp_of_f(f32[3], i32[], f32[], float0[3], float0[], f32[3], f32[]) -> "
            "(f32[3], float0[], f32[]) for cpu>"
        )
        assert v.linear_from == 3 and v.platforms == e.platforms
        cts = np.zeros(3, plait.float0), NONE, 2 * X[1], F32(5)
        x, i, y = v.call(X[0], n, k, *cts)
        np.testing.assert_allclose(x, 6 * X[1] * np.cos(X[0]), rtol=1e-6)
        assert i.dtype == plait.float0 and i.shape == ()
        assert y.item() == 10
        with pytest.raises(PlaitError, match="was exported as float0"):
            v.call(X[0], n, k, np.zeros(3, bool), *cts[1:])
        second = v.vjp().call(X[0], n, k, *cts, X[1], NONE, F32(0))
        np.testing.assert_allclose(second[0], -6 * X[1] ** 2 * np.sin(X[0]), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(second[5], 3 * X[1] * np.cos(X[0]), rtol=1e-5, atol=1e-6)
        assert [s.dtype == plait.float0 for s in second] == [0, 1, 0, 1, 1, 0, 0]


@pytest.mark.feature("E14")
@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "cuda", "tpu")])
@pytest.mark.parametrize("size", ["3", "b"])
def test_arguments_without_derivatives(size, platforms):
    def f(x, n, m):
        return pnp.where(m, x * x * n, 0), n + 1

    x, n, m = X[0], np.array([3, 1, 2], np.int32), np.array([True, False, True])
    types = symbolic_args_specs((x, n, m), size)
    e = both(f, *types, platforms=platforms)[1]

    def total(x, n, m):
        return e.call(x, n, m)[0].sum()

    by_all = plait.grad(total, (0, 1, 2), allow_int=True)(x, n, m)
    np.testing.assert_allclose(by_all[0], np.where(m, 2 * x * n, 0), rtol=1e-6)
    assert all(g.dtype == plait.float0 and g.shape == (3,) for g in by_all[1:])
    second = plait.grad(lambda x: plait.grad(total)(x, n, m).sum())(x)
    np.testing.assert_allclose(second, np.where(m, 2 * n, 0), rtol=1e-6)


FUNCTIONS = {
    "a loop": (
        lambda x: lax.scan(lambda c, r: (pnp.tanh(c + r), c), x[0], x)[0],
        lambda x: np.tanh(np.tanh(x[0] + x[0]) + x[1]),
    ),
    "a choice": (
        lambda x: lax.cond(x.sum() < 9, lambda v: v * v * v, lambda v: v, x),
        lambda x: x**3,
    ),
    "a large constant": (lambda x: pnp.tanh(x @ pnp.asarray(W)), lambda x: np.tanh(x @ W)),
    "linear algebra": (
        lambda x: pnp.linalg.cholesky(x @ x.T + pnp.eye(2)),
        lambda x: np.linalg.cholesky(x @ x.T + np.eye(2)),
    ),
    "a complex number": (
        lambda x: abs(pnp.fft.fft(x + 2)) ** 2,
        lambda x: abs(np.fft.fft(x + 2)) ** 2,
    ),
    "another precision": (
        lambda x: (x.astype("float64") ** 2).astype("float32") * x.astype("int32"),
        lambda x: x**2 * np.trunc(x),
    ),
    "another platform's branch": (
        lambda x: lax.platform_dependent(x, tpu=lambda v: v * 9, default=lambda v: v * v),
        lambda x: x**2,
    ),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("how", [{}, {"platforms": ["tpu", "cpu"]}], ids=["here", "several"])
def test_derivatives_agree_with_differences(name, how):
    f, reference = FUNCTIONS[name]
    x = X + F32(0.35)
    want = slopes(reference, x)
    for e in both(f, x, **how):
        gradient = plait.grad(lambda x, e=e: e.call(x).sum())
        for g in (gradient, plait.jit(gradient), plait.jacfwd(lambda x, e=e: e.call(x).sum())):
            np.testing.assert_allclose(g(x), want, rtol=1e-3, atol=1e-3)


def test_derivatives_of_any_order_by_all_modes():
    """The third derivative of x**5; forward mode takes one order more than reverse mode."""
    f = lambda x: x**5  # noqa: E731
    grad, forward = plait.grad, lambda f: lambda x: plait.jvp(f, (x,), (F32(1),))[1]
    x = F32(1.5)
    for e in both(f, x, order=4):
        for first in (grad, forward):
            for second in (grad, forward):
                np.testing.assert_allclose(first(second(e.call))(x), 20 * x**3, rtol=1e-5)
        for third in (grad, forward):
            got = plait.jit(third(plait.jit(grad(grad(e.call)))))(x)
            np.testing.assert_allclose(got, 60 * x**2, rtol=1e-5)


def test_derivatives_of_each_example():
    for e in both(lambda x: pnp.sin(x).sum(), X[0], order=1):
        got = plait.vmap(plait.grad(e.call))(X)
        np.testing.assert_allclose(got, np.cos(X), rtol=1e-6)
        looped = plait.grad(lambda x, e=e: lax.scan(lambda c, r: (c + e.call(r), None), 0.0, x)[0])
        np.testing.assert_allclose(looped(X), np.cos(X), rtol=1e-6)


def test_arguments_that_do_not_vary_keep_their_values():
    """Integers and keys choose, and have no derivative."""

    def f(key, i, x):
        return x[i] * plait.random.normal(key, (3,))

    key = plait.random.key(1)
    noise = np.asarray(plait.random.normal(key, (3,)))
    for e in both(f, key, np.int32(0), X, order=1):
        got = plait.grad(lambda x, e=e: e.call(key, np.int32(1), x).sum())(X)
        np.testing.assert_allclose(got, [0 * noise, noise], rtol=1e-6)


def test_complex_numbers():
    z = np.array([1 + 2j, -3j], np.complex64)
    for e in both(lambda z: z**3, z, order=2):
        got = plait.grad(lambda z, e=e: e.call(z)[0], holomorphic=True)(z)
        np.testing.assert_allclose(got, [3 * z[0] ** 2, 0], rtol=1e-5)


def test_custom_rules_are_the_derivatives():
    @plait.custom_vjp
    def loud(x):
        return x * x

    loud.defvjp(lambda x: (x * x, x), lambda x, ct: (7 * ct * x * pnp.asarray(W[0]),))

    @plait.custom_jvp
    def quiet(x):
        return x * x

    quiet.defjvp(lambda xs, ts: (xs[0] * xs[0], ts[0] * 11))
    x = np.ones(200, F32)
    for e in both(lambda x, y: loud(x) + quiet(y), x, x, order=1):
        first, second = plait.grad(lambda x, y, e=e: e.call(x, y).sum(), (0, 1))(x, 2 * x)
        np.testing.assert_allclose(first, 7 * W[0], rtol=1e-6)
        np.testing.assert_allclose(second, 11 * x)


def test_sizes_stay_symbolic():
    types = symbolic_args_specs((X, X[0]), ("2*b, c", "c"), ["b <= 8"])
    f = lambda x, y: pnp.concatenate([pnp.sin(x).reshape(-1), y * y]) * x.shape[0]  # noqa: E731
    for e in both(f, *types):
        v = e.vjp()
        assert [str(a) for a in v.in_avals] == ["f32[2*b,c]", "f32[c]", "f32[2*b*c + c]"]
        assert v.constraints == ("b <= 8",) and v.scope is e.scope
        for b, c in ((1, 1), (2, 5)):
            x, y = np.ones((2 * b, c), F32), np.arange(c, dtype=F32)
            ct = np.arange(2 * b * c + c, dtype=F32)
            first, second = v.call(x, y, ct)
            want = 2 * b * np.cos(x) * ct[: -c or None].reshape(x.shape)
            np.testing.assert_allclose(first, want, rtol=1e-5)
            np.testing.assert_allclose(second, 4 * b * y * ct[-c:], rtol=1e-5)
            got = plait.grad(lambda x, y, e=e: e.call(x, y).sum(), 1)(x, y)
            np.testing.assert_allclose(got, 4 * b * y, rtol=1e-5)
        with pytest.raises(PlaitError, match="cannot be called with these sizes"):
            v.call(x, y, ct[1:])


# ---- what is not there ---------------------------------------------------------------------


def test_what_was_saved_without_a_derivative_says_so():
    """It is differentiated by reading it back, but there is none that was saved."""
    exported = export(lambda x: pnp.sin(x))(X)
    assert exported.has_vjp()
    for order, again in enumerate([deserialize(exported.serialize(n)) for n in range(3)]):
        for _ in range(order):
            assert again.has_vjp()
            again = again.vjp()
        assert not again.has_vjp()
        with pytest.raises(NotExportable, match="was saved without its derivative") as e:
            again.vjp()
        assert "serialize(vjp_order=1)" in e.value.fix and "test_derivatives.py" in str(e.value)
        xs = [np.ones(a.shape, F32) for a in again.in_avals]
        first = plait.vjp(lambda *xs, f=again: f.call(*xs), *xs)[1](again.call(*xs))
        assert all(np.isfinite(np.asarray(ct)).all() for ct in first)


def test_orders_that_were_not_read_are_not_written():
    once = deserialize(export(pnp.sin)(X).serialize(vjp_order=1))
    with pytest.raises(NotExportable, match="vjp_of_sin was saved without its derivative"):
        once.serialize(vjp_order=2)
    assert not deserialize(once.serialize()).has_vjp()


@pytest.mark.parametrize("order", [-1, 1.5, None, "1"])
def test_orders_that_are_none(order):
    with pytest.raises(ArgumentError, match="vjp_order is .*, and is a number") as e:
        export(pnp.sin)(X).serialize(vjp_order=order)
    assert e.value.fix


def test_forward_mode_needs_one_order_that_was_saved():
    """The derivative that was saved is read back, and transposed."""
    once = both(pnp.sin, X, order=1)[1]
    out, dot = plait.jvp(once.call, (X,), (X,))
    np.testing.assert_allclose(out, np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(dot, np.cos(X) * X, rtol=1e-5, atol=1e-6)
    linear = both(lambda x: 2 * x, X)[1]
    with pytest.raises(MissingRule, match="nothing says that it is linear") as e:
        plait.linear_transpose(linear.call, X)(X)
    assert "transpose the function" in e.value.fix


def test_what_has_no_derivative_is_refused_when_it_is_asked_for():
    exported = export(lambda x: lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2 + 1, x))(X)
    assert len(exported.serialize()) > 0
    with pytest.raises(PlaitError, match="while"):
        exported.serialize(vjp_order=1)


# ---- the file ------------------------------------------------------------------------------


def parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def test_constants_are_held_once():
    """Those of the function, those of its derivative alone, and those of loops in it."""
    weights = np.random.default_rng(0).normal(size=(1000, 1000)).astype(F32)

    @plait.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * pnp.asarray(weights[:, 1]),))
    w = pnp.asarray(weights)
    step = lambda c, _: (pnp.tanh(c @ w), None)  # noqa: E731
    g = lambda x: lax.scan(step, f(x), None, length=2)[0]  # noqa: E731
    exported = export(g)(symbolic_args_specs(weights[:2], "b, 1000"))
    sizes = [len(exported.serialize(vjp_order=n)) for n in range(4)]
    assert 4e6 < sizes[0] < 4.02e6
    assert sizes[1] - sizes[0] < 2e4  # 4,000 of them are the constant of the derivative
    assert sizes[2] - sizes[1] < 2e4 and sizes[3] - sizes[2] < 4e4
    again = deserialize(exported.serialize(vjp_order=2))
    assert HELD not in again.vjp().mlir_module()
    assert again.vjp().mlir_module_serialized == exported.vjp().mlir_module_serialized
    x = np.ones((1, 1000), F32) / 1000
    y = np.tanh(2 * x @ weights)
    z = np.tanh(y @ weights)
    back = ((1 - z**2) @ weights.T * (1 - y**2)) @ weights.T * weights[:, 1]
    got = plait.grad(lambda x: again.call(x).sum())(x)
    np.testing.assert_allclose(got, back, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8", "int4", "bool", "complex64"])
def test_constants_of_every_kind_of_element(dtype):
    x = np.arange(300, dtype=F32)
    held = pnp.asarray(x % 5).astype(dtype)

    def f(x):
        return pnp.real(x * (held.astype("complex64") if dtype == "complex64" else held))

    exported, again = both(f, x, order=1)
    _, members = parts(exported.serialize(vjp_order=1))
    inside = len(exported.vjp().mlir_module_serialized) - len(members["vjp1.mlirbc"])
    assert (HELD.encode() in members["vjp1.mlirbc"]) == (inside != 0)
    got = plait.grad(lambda x: again.call(x).sum())(x)
    np.testing.assert_allclose(got, (x % 5 != 0) if dtype == "bool" else x % 5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_constants_that_differ_in_one_element_are_two(dtype):
    first = np.random.default_rng(0).normal(size=5000).astype(dtype)
    second = first.copy()
    second[-1] += 1
    f = lambda x: pnp.real(x * pnp.asarray(first) + x * x * pnp.asarray(second)).sum()  # noqa: E731
    exported = export(f)(np.ones(5000, F32))
    more = len(exported.serialize(vjp_order=1)) - len(exported.serialize())
    again = deserialize(exported.serialize(vjp_order=1))
    assert more < 4000
    got = plait.grad(again.call)(np.ones(5000, F32))
    np.testing.assert_allclose(got, (first + 2 * second).real, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", [{}, {"platforms": ["cuda", "cpu"]}, {"libraries": False}])
def test_it_is_written_again_bit_for_bit(how):
    f = lambda x: pnp.linalg.cholesky(x @ W @ W.T @ x.T)  # noqa: E731
    exported = export(f, **how)(symbolic_args_specs(X, "b, 3"))
    saved = exported.serialize(vjp_order=2)
    assert saved == deserialize(saved).serialize(vjp_order=2)
    assert saved == export(f, **how)(symbolic_args_specs(X, "b, 3")).serialize(vjp_order=2)
    assert exported.serialize() == deserialize(saved).serialize()


def test_anybody_can_look_into_it():
    saved = export(lambda x: pnp.linalg.cholesky(x @ x.T))(X).serialize(vjp_order=2)
    manifest, members = parts(saved)
    assert sorted(members) == ["main.mlirbc", "vjp1.mlirbc", "vjp2.mlirbc"]
    assert (manifest["format"], manifest["min_reader"], manifest["requires"]) == (1, 1, [])
    first, second = manifest["vjp"]
    calls = ["lapack_spotrf_ffi", "lapack_strsm_ffi"]
    assert first == second == {"custom_calls": calls, "custom_rules": []}


def test_another_process_reads_it_without_autodiff(tmp_path):
    """It has the derivative; what differentiates calls of it is not needed to compute it."""
    path = tmp_path / "artifact"
    path.write_bytes(export(lambda x: pnp.sin(x @ W))(X[0]).serialize(vjp_order=1))
    np.save(tmp_path / "w.npy", W)
    code = (
        "import sys, numpy as np, plait\n"
        "exported = plait.export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "w = np.load(sys.argv[2])\n"
        "x = np.ones(3, np.float32)\n"
        "(ct,) = exported.vjp().call(x, np.ones(200, np.float32))\n"
        "np.testing.assert_allclose(ct, np.cos(x @ w) @ w.T, rtol=1e-4, atol=1e-4)\n"
        "assert 'plait_autodiff' not in sys.modules\n"
        "try:\n"
        "    plait.export.export(lambda x: x * 2)(x).serialize(vjp_order=1)\n"
        "except plait.errors.MissingPlugin as e:\n"
        "    assert 'plait-autodiff' in str(e), e\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    env = {"PLAIT_PLUGINS": "export", "PLAIT_CACHE_DIR": "", "PATH": ""}
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "w.npy")]
    done = subprocess.run(command, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


# ---- damage --------------------------------------------------------------------------------

SAVED = export(lambda x: pnp.tanh(x @ W))(symbolic_args_specs(X, "b, 3")).serialize(vjp_order=2)


def used(data):
    """Every module of an artifact: each is verified when it is first asked for."""
    each = [deserialize(data)]
    while each[-1].has_vjp():
        each.append(each[-1].vjp())
    return [e.mlir_module_serialized for e in each]


def refused(data, text):
    with pytest.raises(ArtifactError, match=text) as e:
        used(data)
    assert e.value.fix and "test_derivatives.py" in str(e.value)


def changed(members=None, **fields):
    manifest, held = parts(SAVED)
    return container.pack({**manifest, **fields}, held if members is None else members)


@pytest.mark.parametrize("vjp", [3, "x", {}, [1], [[]], [{}], [{"custom_calls": 1}], None])
def test_manifests_that_describe_no_derivatives(vjp):
    refused(changed(vjp=vjp), "the artifact is damaged")


def test_members_that_are_missing_or_others():
    manifest, members = parts(SAVED)
    first, second = members["vjp1.mlirbc"], members["vjp2.mlirbc"]
    without = {k: v for k, v in members.items() if k != "vjp1.mlirbc"}
    refused(changed(without), "it has no vjp1.mlirbc")
    refused(changed(vjp=manifest["vjp"] * 2), "it has no vjp3.mlirbc")
    refused(changed({**members, "vjp1.mlirbc": second}), "is not the vjp_of_lambda it describes")
    refused(changed({**members, "vjp2.mlirbc": first}), "is not the vjp_of_vjp_of_lambda it")
    refused(changed({**members, "vjp1.mlirbc": members["main.mlirbc"]}), "is not the vjp_of_lambda")
    refused(changed(vjp=[{"custom_calls": []}] * 2), "is not the vjp_of_lambda it describes")
    refused(changed(vjp=[{"custom_calls": ["evil"]}] * 2), "outside StableHLO: evil")
    cut = {**members, "vjp1.mlirbc": first[: len(first) // 2]}
    refused(changed(cut), "cannot be read")
    assert not deserialize(changed(vjp=[])).has_vjp()


@pytest.mark.parametrize("config", ["{number = 1 : i64}", "{number = -1 : i64}", "{number = true}",
                                    "{number = 9223372036854775807 : i64}", "{}", None,
                                    '{number = "0"}'])  # fmt: skip
def test_numbers_of_no_constant(config):
    _, members = parts(SAVED)
    with lock:
        module = parsed(members["vjp1.mlirbc"])
        (op,) = operations(module, lambda op: HELD in str(op) and "custom_call" in op.name)
        if config is None:
            del op.attributes["backend_config"]
        else:
            op.attributes["backend_config"] = attr(config)
        code = mlir.bytecode(module)
    broken = {**members, "vjp1.mlirbc": artifact_of(code, False)}
    refused(changed(broken), "a constant of a derivative is missing")


def test_constants_of_another_type():
    """The function's constant is not as large as its derivative says."""
    other = export(lambda x: pnp.tanh(x @ np.concatenate([W, W], 1)))
    manifest, members = parts(other(symbolic_args_specs(X, "b, 3")).serialize(vjp_order=1))
    mixed = {**members, "vjp1.mlirbc": parts(SAVED)[1]["vjp1.mlirbc"]}
    refused(container.pack(manifest, mixed), "a constant of a derivative is missing")


def test_a_function_that_calls_for_constants_is_refused():
    _, members = parts(SAVED)
    refused(changed({**members, "main.mlirbc": members["vjp1.mlirbc"]}), "is not the lambda")


def test_no_flipped_bit_goes_unnoticed():
    rng = np.random.default_rng(0)
    for i in rng.choice(len(SAVED), 400, replace=False):
        data = bytearray(SAVED)
        data[i] ^= 1 << (i % 8)
        try:
            again = deserialize(bytes(data))
        except ArtifactError:
            continue
        assert again.serialize(vjp_order=2) == SAVED, i


def test_custom_calls_of_derivatives_must_be_known():
    saved = export(lambda x: pnp.linalg.cholesky(x @ x.T))(X).serialize(vjp_order=1)
    manifest, members = parts(saved)
    data = members["vjp1.mlirbc"].replace(b"lapack_strsm_ffi", b"lapack_strsn_ffi")
    calls = [{"custom_calls": ["lapack_spotrf_ffi", "lapack_strsn_ffi"]}]
    other = container.pack({**manifest, "vjp": calls}, {**members, "vjp1.mlirbc": data})
    refused(other, "vjp_of_lambda calls functions outside StableHLO: lapack_strsn_ffi")
    assert deserialize(other, custom_calls=["lapack_strsn_ffi"]).has_vjp()


INTEGERS = {
    "integers": (lambda x, i: (x * i).sum(), np.int32([3, 1, 2]), np.float32([3, 1, 2])),
    "booleans": (lambda x, i: pnp.where(i, x, 0).sum(), np.array([True, False, True]),
                 np.float32([1, 0, 1])),
    "lookups": (lambda x, i: (x[i] * x).sum(), np.int32([0, 0, 0]), np.float32([6, 0, 0])),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_arguments_without_derivatives_of_sizes_known_later(name):
    f, i, want = INTEGERS[name]
    x = np.float32([1, 2, 3]) if name != "lookups" else np.float32([2, 1, 1])
    want = want if name != "lookups" else np.float32([2 + 2 + 1 + 1, 2, 2])
    specs = symbolic_args_specs((x, i), "n")
    saved = deserialize(export(f)(*specs).serialize(vjp_order=1))
    got = plait.grad(lambda x: saved.call(x, i))(x)
    np.testing.assert_allclose(got, want, 1e-6)
    whole = export(plait.grad(f, (0, 1), allow_int=True))(*specs)
    np.testing.assert_allclose(whole.call(x, i)[0], want, 1e-6)
