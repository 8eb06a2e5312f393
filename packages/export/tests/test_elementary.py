"""Linear algebra without libraries, for other platforms, and for several at once.

Invariant: values are compared with numpy's and scipy's, factors with what they multiply to; what a
module calls is read from its text.
"""

import numpy as np
import pytest
import scipy.linalg as sl

import plait
from plait import lax
from plait.ext.errors import PlaitError
from plait_export import NotExportable, deserialize, export, symbolic_args_specs
from plait_numpy.ext.linalg import geqrf

la, npla = lax.linalg, plait.numpy.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [(0, 0), (1, 1), (2, 2), (5, 5), (16, 16), (5, 2), (2, 5), (16, 3), (0, 3), (3, 0)]
SQUARE = [0, 1, 2, 5, 16]
# each dtype at one size that is not a special case, two of them at every size
CASES = [(d, s) for d in DTYPES for s in SIZES if d in ("float32", "complex128") or s == (5, 2)]
SQUARES = [(d, n) for d in DTYPES for n in SQUARE if d in ("float32", "complex128") or n == 5]


@pytest.fixture(autouse=True)
def compiled_fast():
    """What is computed here takes less time than compiling it."""
    with plait.config(tier="fast"):
        yield


def sample(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def adj(x):
    return np.swapaxes(np.conj(x), -1, -2)


def run(f, *xs, **how):
    """What a saved and loaded artifact without libraries gives; it calls nothing."""
    made = deserialize(export(f, libraries=False, **how)(*xs).serialize())
    assert "custom_call" not in made.mlir_module() and not made.custom_calls
    return plait.tree.map(np.asarray, made.call(*xs))


def close(got, want, size=1.0):
    """To rounding: so many units of it as there are steps, of values of this size."""
    want = np.asarray(want)
    eps = np.finfo(got.dtype).eps
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=400 * eps * max(size, 1.0))


def orthogonal(q):
    close(adj(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)))


# ---- without libraries ---------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "n"), SQUARES)
def test_cholesky(dtype, n):
    x = sample(dtype, 3, n, n)
    x = x @ adj(x) + n * np.eye(n, dtype=dtype)
    low = run(lambda x: la.cholesky(x, symmetrize_input=False), np.tril(x) + np.triu(x, 1) * 0)
    assert low.dtype == dtype
    close(low, np.linalg.cholesky(x), n)
    np.testing.assert_array_equal(np.triu(low, 1), 0)


def test_cholesky_of_what_is_not_positive_definite_is_nan_alone():
    x = np.stack([np.eye(3), -np.eye(3), np.zeros((3, 3)), 4 * np.eye(3)])
    low = run(la.cholesky, x)
    assert np.isnan(low[1:3]).all()
    np.testing.assert_array_equal(low[[0, 3]], [np.eye(3), 2 * np.eye(3)])


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("dtype", "size"), CASES)
def test_lu(dtype, size):
    x = sample(dtype, 2, *size)
    m, n = size
    lu, pivots, order = run(la.lu, x)
    assert pivots.dtype == order.dtype == np.int32 and pivots.shape == (2, min(size))
    low = np.tril(lu, -1)[..., : min(size)] + np.eye(m, min(size), dtype=dtype)
    close(low @ np.triu(lu)[:, : min(size)], np.take_along_axis(x, order[..., None], 1), n)
    assert np.all(np.abs(low) <= 1.5)  # the greatest was chosen
    for a, b, p in zip(x, lu, pivots, strict=True) if m == n > 0 else ():
        want, chosen = sl.lu_factor(a)
        np.testing.assert_array_equal(p, chosen)
        close(b, want, n)


def test_lu_of_singular_matrices():
    for x in (np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 0.0, 2.0])):
        want, chosen = sl.lapack.dgetrf(x)[:2]
        lu, pivots, _ = run(la.lu, x)
        np.testing.assert_array_equal(lu, want)
        np.testing.assert_array_equal(pivots, chosen)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("dtype", "size"), CASES)
def test_qr(dtype, size, full):
    x = sample(dtype, 2, *size)
    q, r = run(lambda x: tuple(la.qr(x, full_matrices=full)), x)
    assert q.dtype == r.dtype == dtype
    close(q @ r, x, size[0])
    orthogonal(q)
    np.testing.assert_array_equal(np.tril(r, -1), 0)
    if min(size):
        close(np.abs(r[:, : min(size)]), np.abs(np.linalg.qr(x)[1]), size[0])


@pytest.mark.sampled(10)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [False, True])
def test_reflectors_at_work(dtype, left):
    x, c = sample(dtype, 2, 5, 3), sample(dtype, 2, 5, 5, seed=1)

    def f(x, c):
        packed, taus = geqrf.bind(x)
        both = [la.ormqr(packed, taus, c, left=left, transpose=t) for t in (False, True)]
        return la.householder_product(packed, taus), *both

    q, plain, turned = run(f, x, c)
    orthogonal(q)
    close(q @ (adj(q) @ x), x, 5)
    whole = np.stack([sl.qr(a)[0] for a in x])  # LAPACK's signs, which ours are too
    close(plain, whole @ c if left else c @ whole, 5)
    close(turned, adj(whole) @ c if left else c @ adj(whole), 5)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("dtype", "n"), [(d, n) for d, n in SQUARES if n != 16])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(dtype, n, left):
    a = sample(dtype, 2, n, n) + 2 * n * np.eye(n, dtype=dtype)
    b = sample(dtype, 2, *((n, 3) if left else (3, n)), seed=1)
    ways = [(low, how, unit) for low in (0, 1) for how in "NTC" for unit in (0, 1)]

    def f(a, b):
        return [la.triangular_solve(a, b, left_side=left, lower=bool(low), unit_diagonal=bool(unit),
                                    transpose_a=how != "N", conjugate_a=how == "C")
                for low, how, unit in ways]  # fmt: skip

    for x, (low, how, unit) in zip(run(f, a, b), ways, strict=True):
        t = np.tril(a) if low else np.triu(a)
        if unit:
            t = t + np.eye(n, dtype=dtype) * (1 - t)
        t = {"N": t, "T": np.swapaxes(t, -1, -2), "C": adj(t)}[how]
        scale = np.abs(x).max(initial=1) * np.abs(t).max(initial=1) * max(n, 1)
        close(t @ x if left else x @ t, b, scale)


def test_the_other_triangle_is_not_read():
    a, b = sample("float64", 4, 4) + 8 * np.eye(4), sample("float64", 4, 2)
    low = np.tril(a) + np.triu(np.full((4, 4), np.nan), 1)
    x, factor, values = run(
        lambda a, b, p: (
            la.triangular_solve(a, b, left_side=True, lower=True),
            la.cholesky(p, symmetrize_input=False),
            la.eigh(p, symmetrize_input=False)[1],
        ),
        low, b, np.tril(a @ a.T) + np.triu(np.full((4, 4), np.nan), 1),
    )  # fmt: skip
    close(np.tril(a) @ x, b, 64)
    close(factor, np.linalg.cholesky(a @ a.T), 64)
    close(values, np.linalg.eigvalsh(a @ a.T), 200)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("dtype", "n"), [*SQUARES, ("complex64", 3), ("float64", 33)])
@pytest.mark.parametrize("lower", [False, True])
def test_symmetric_eigenvalues(dtype, n, lower):
    x = sample(dtype, 2, n, n)
    x = x + adj(x)

    def f(x):
        v, w = la.eigh(x, lower=lower, symmetrize_input=False)
        return v, w, npla.eigvalsh(x, "L" if lower else "U")

    v, w, alone = run(f, x)
    assert v.dtype == dtype and w.dtype == x.real.dtype
    orthogonal(v)
    close(x @ v, v * w[:, None], 4 * n)
    for values in (w, alone):
        close(values, np.linalg.eigvalsh(x), 4 * n)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("dtype", "size"), [*CASES, ("float64", (33, 33))])
def test_singular_values(dtype, size):
    x = sample(dtype, 2, *size)
    *every, alone = run(
        lambda x: (npla.svd(x), npla.svd(x, full_matrices=False), npla.svd(x, compute_uv=False)), x
    )
    k = min(size)
    for (u, s, v), left, right in zip(every, (size[0], k), (size[1], k), strict=True):
        assert u.dtype == v.dtype == dtype and s.dtype == x.real.dtype
        assert u.shape == (2, size[0], left) and v.shape == (2, right, size[1])
        orthogonal(u)
        orthogonal(adj(v))
        close((u[..., :k] * s[:, None]) @ v[:, :k], x, sum(size))
    for values in (every[0].S, alone):
        close(values, np.linalg.svd(x, compute_uv=False), sum(size))


MATRICES = {
    "zeros": np.zeros((4, 4)),
    "ones": np.ones((4, 4)),
    "equal values": np.diag([2.0, 2, 2, 1]),
    "rank 1": np.outer([1.0, 2, 3, 4], [1.0, -1, 1, -1]),
    "graded": np.diag([1.0, 1e-4, 1e-8, 1e-12]) + 1e-13,
    "negative": -np.eye(4),
    "huge": np.full((4, 4), 1e200) + np.diag([1e200, 2e200, 3e200, 4e200]),
    "tiny": np.full((4, 4), 1e-200) + np.diag([1e-200, 2e-200, 3e-200, 4e-200]),
    "of a cycle": np.roll(np.eye(4), 1, 0),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", MATRICES)
def test_special_matrices(name):
    x = MATRICES[name]
    h, size = x + x.T, np.abs(x).max() or 1.0
    u, s, v, w, q = run(lambda x, h: (*npla.svd(x), *la.eigh(h)[::-1]), x, h)
    for got in (u, v.T, q):
        orthogonal(got)
    close(u * (s / size) @ v, x / size)
    close(s / size, np.linalg.svd(x, compute_uv=False) / size)
    close(w / size, np.linalg.eigvalsh(h) / size)
    close(h / size @ q, q * (w / size))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_nan_and_spoils_no_other(bad):
    x = np.stack([np.eye(3), np.diag([1.0, bad, 2.0])])
    w, s = run(lambda x: (npla.eigvalsh(x), npla.svd(x, compute_uv=False)), x)
    np.testing.assert_array_equal(np.stack([w, s])[:, 0], np.ones((2, 3)))
    assert np.isnan(w[1]).all() and np.isnan(s[1]).all()


MADE_OF_THEM = {
    "solve": (
        lambda x: npla.solve(x, x[..., :1] + 1),
        lambda x: np.linalg.solve(x, x[..., :1] + 1),
    ),
    "inv": (npla.inv, np.linalg.inv),
    "det": (npla.det, np.linalg.det),
    "slogdet": (lambda x: npla.slogdet(x)[1], lambda x: np.linalg.slogdet(x)[1]),
    "pinv": (npla.pinv, np.linalg.pinv),
    "matrix_rank": (npla.matrix_rank, np.linalg.matrix_rank),
    "norm": (lambda x: npla.norm(x, 2, (-2, -1)), lambda x: np.linalg.norm(x, 2, (-2, -1))),
    "cond": (npla.cond, np.linalg.cond),
    "lstsq": (lambda x: npla.lstsq(x[0], x[1])[0], lambda x: np.linalg.lstsq(x[0], x[1])[0]),
    "in a loop": (lambda x: lax.fori_loop(0, 2, lambda _, c: npla.inv(c), x), lambda x: x),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", MADE_OF_THEM)
def test_what_is_made_of_them(name):
    f, want = MADE_OF_THEM[name]
    x = sample("float64", 3, 4, 4) + 4 * np.eye(4)
    with np.errstate(all="ignore"):
        close(np.asarray(run(f, x), np.float64), want(x), 500)


@pytest.mark.parametrize("f", [la.cholesky, npla.inv, npla.eigvalsh, npla.pinv])
def test_stacks_of_any_size(f):
    types = symbolic_args_specs(np.zeros((1, 3, 3)), "b, 3, 3")
    made = deserialize(export(f, libraries=False)(types).serialize())
    assert set(made.custom_calls) <= {"shape_assertion"}
    for n in (1, 4):
        x = sample("float64", n, 3, 3)
        x = x @ adj(x) + np.eye(3)
        want = {la.cholesky: np.linalg.cholesky, npla.inv: np.linalg.inv,
                npla.eigvalsh: np.linalg.eigvalsh, npla.pinv: np.linalg.pinv}[f](x)  # fmt: skip
        close(np.asarray(made.call(x)), want, 500)


def test_matrices_of_any_size():
    types = symbolic_args_specs(np.zeros((1, 3, 3)), "b, n, n")
    made = export(lambda x: (la.cholesky(x), npla.inv(x), npla.qr(x).R), libraries=False)(types)
    assert set(made.custom_calls) <= {"shape_assertion"}
    for n in (1, 2, 5):
        x = sample("float64", 2, n, n)
        x = x @ adj(x) + np.eye(n)
        low, inverse, r = map(np.asarray, made.call(x))
        close(low, np.linalg.cholesky(x), 100)
        close(inverse, np.linalg.inv(x), 100)
        close(np.abs(r), np.abs(np.linalg.qr(x)[1]), 100)
    for f in (npla.eigvalsh, npla.svd):
        with pytest.raises(NotExportable, match="without libraries is for matrices of known") as e:
            export(f, libraries=False)(types)
        assert "for each size" in e.value.fix


@pytest.mark.parametrize("f", [la.eig, la.schur, la.hessenberg, la.tridiagonal])
def test_what_has_no_form_without_libraries(f):
    x = sample("float64", 3, 3)
    with pytest.raises(NotExportable, match=r"calls functions outside StableHLO: lapack_d") as e:
        export(f, libraries=False)(x)
    assert "libraries=True" in e.value.fix and "test_elementary.py" in str(e.value)


# ---- with the libraries of other platforms -------------------------------------------------

CALLS = {  # what functions call on CUDA (cusolver_..), ROCm (hipsolver_..) and TPUs
    "cholesky": (la.cholesky, "potrf", ""),
    "lu": (la.lu, "getrf", "LuDecomposition"),
    "solve": (lambda x: npla.solve(x, x), "getrf", "LuDecomposition"),
    "qr": (npla.qr, "geqrf orgqr", "Qr ProductOfElementaryHouseholderReflectors"),
    "eigh": (la.eigh, "syevd", "Eigh"),
    "svd": (npla.svd, "gesvdj", ""),
    "triangular_solve": (lambda x: la.triangular_solve(x, x), "", ""),
}


def calls_of(f, *platforms, shapes=None):
    x = np.eye(3, dtype=np.float32)
    types = x if shapes is None else symbolic_args_specs(x, shapes)
    made = deserialize(export(f, platforms=platforms)(types).serialize())
    assert made.platforms == platforms
    return {*made.custom_calls} - {"shape_assertion"}, made


@pytest.mark.parametrize("shapes", [None, "n, n"])
@pytest.mark.parametrize("name", CALLS)
def test_libraries_of_other_platforms(name, shapes):
    f, solver, tpu = CALLS[name]
    for platform, library in (("cuda", "cusolver"), ("rocm", "hipsolver")):
        found, made = calls_of(f, platform, shapes=shapes)
        assert found == {f"{library}_{routine}_ffi" for routine in solver.split()}
        assert "lapack" not in made.mlir_module()
    if name != "svd" or shapes is None:  # which TPUs have no library for
        assert calls_of(f, "tpu", shapes=shapes)[0] == {*tpu.split()}


def test_other_things_are_told_as_these_libraries_want_them():
    text = calls_of(la.eigh, "tpu")[1].mlir_module()
    assert "@Eigh" in text and 'backend_config = "1,1,100,1e-6"' in text
    text = calls_of(la.lu, "tpu")[1].mlir_module()
    assert "@LuDecomposition" in text and "api_version = 2" in text and "subtract" not in text
    text = calls_of(la.cholesky, "rocm")[1].mlir_module()
    assert "lower = true" in text and "api_version = 4" in text


@pytest.mark.parametrize("shapes", [None, "b, 3, 3"])
def test_several_platforms_each_by_its_library(shapes):
    def f(x):
        return npla.inv(x), npla.eigvalsh(x), npla.svd(x), npla.qr(x), la.cholesky(x)

    x = sample("float32", 2, 3, 3)
    x = x @ adj(x) + np.eye(3, dtype=np.float32)
    types = x if shapes is None else symbolic_args_specs(x, shapes)
    made = export(f, platforms=["tpu", "cuda", "cpu", "rocm"])(types)
    made = deserialize(made.serialize())
    for word in ("Eigh", "cusolver_gesvdj_ffi", "hipsolver_getrf_ffi", "lapack_sgesdd_ffi"):
        assert word in made.custom_calls
    for call in (made.call, plait.jit(made.call)):  # here those of others are gone
        inverse, values, (u, s, v), (q, r), low = plait.tree.map(np.asarray, call(x))
        close(inverse, np.linalg.inv(x), 100)
        close(values, np.linalg.eigvalsh(x), 100)
        close(u * s[:, None] @ v, x, 100)
        close(q @ r, x, 100)
        close(low, np.linalg.cholesky(x), 100)


def test_results_of_numpy_need_no_registration():
    made = deserialize(export(lambda x: (npla.qr(x), npla.slogdet(x)))(np.eye(2)).serialize())
    qr, determinant = made.call(np.eye(2))
    assert type(qr) is npla.QRResult and type(determinant) is npla.SlogdetResult
    np.testing.assert_allclose(np.abs(qr.R), np.eye(2))


@pytest.mark.parametrize("f", [la.schur, la.hessenberg, la.eig])
def test_what_no_library_does_there(f):
    with pytest.raises(PlaitError, match="none is known for tpu") as e:
        export(f, platforms=["tpu"])(np.eye(3))
    assert "cpu" in e.value.fix
