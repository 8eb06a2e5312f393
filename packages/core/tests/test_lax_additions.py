"""plait.lax beyond the plain operations: products by groups and scales, high bits, patches and
local convolutions, shapes, windows of functions, composites.

Invariant: everything is compared with loops over numpy arrays.
"""

import itertools

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import AxisError, TypeRule

RNG = np.random.default_rng(3)
Ragged = lax.RaggedDotDimensionNumbers


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=1e-5, atol=1e-5)


# ---- products ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_upper_half_of_products(dtype):
    info = np.iinfo(dtype)
    special = np.array([info.min, info.max, 0, 1, info.max, info.min], dtype)
    x, y = (RNG.integers(info.min, info.max, 10, dtype, endpoint=True) for _ in range(2))
    x, y = np.concatenate([x, special]), np.concatenate([y, special[::-1]])
    want = [(int(a) * int(b)) >> info.bits for a, b in zip(x, y)]
    got = lax.mulhi(x, y)
    assert got.dtype == dtype and np.asarray(got).tolist() == want


def test_product_in_another_dtype():
    x = np.array([100, -100], np.int8)
    got = lax.mul(x, x, out_dtype=np.int32)
    assert got.dtype == np.int32 and np.asarray(got).tolist() == [10000, 10000]
    assert plait.jit(lambda v: lax.mul(v, v, out_dtype="float32"))(x).dtype == np.float32


def test_algorithms_ask_for_exactness():
    x = normal(4)
    for precision in (lax.DotAlgorithmPreset.BF16_BF16_F32, "F32_F32_F32", lax.Precision.HIGH,
                      lax.DotAlgorithm(np.float16, np.float16, np.float32)):  # fmt: skip
        close(lax.dot(x, x, precision=precision), x @ x)
    text = lambda p: plait.jit(lambda v: lax.dot(v, v, precision=p)).lower(x).as_text()  # noqa: E731
    assert "HIGHEST" in text(lax.DotAlgorithmPreset.F32_F32_F32)
    assert "HIGHEST" in text(lax.DotAlgorithm(np.float32, np.float32, np.float32))
    assert "HIGH" not in text(lax.DotAlgorithmPreset.F16_F16_F32)


def test_scaled_products():
    x, y = normal(2, 3, 4), normal(2, 4, 5)
    s, t = normal(2, 3, 2), normal(2, 1, 5)
    got = lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, preferred_element_type=np.float32)
    close(got, np.einsum("bmk,bkn->bmn", x * np.repeat(s, 2, 2), y * np.repeat(t, 4, 1)))
    assert lax.scaled_dot(x[0], y[0]).dtype == plait.numpy.bfloat16
    with pytest.raises(TypeRule, match="not scales"):
        lax.scaled_dot(x, y, lhs_scale=normal(2, 1, 4))


def bounds(sizes):
    ends = np.cumsum(sizes)
    return zip(ends - sizes, ends)


def test_rows_divided_in_groups():
    x, w = normal(2, 3, 4, 5), normal(2, 3, 5, 6)  # (b, x, m, k), (b, g, k, n)
    x[1, 2, 3] = np.inf  # of no group
    sizes = RNG.integers(0, 2, (2, 3, 3))
    numbers = Ragged((((3,), (2,)), ((0,), (0,))), [2], [1])
    want = np.zeros((2, 3, 4, 6))
    for b, i in np.ndindex(2, 3):
        for g, (start, end) in enumerate(bounds(sizes[b, i])):
            want[b, i, start:end] = x[b, i, start:end] @ w[b, g]
    f = lambda *xs: lax.ragged_dot_general(*xs, numbers)  # noqa: E731
    close(f(x, w, sizes), want)
    close(plait.jit(f)(x, w, sizes), want)
    plain = Ragged((((1,), (1,)), ((), ())), [0], [0])
    one, matrices, some = x[0, 0], w[0, 1:], np.array([1, 1, 2])
    close(lax.ragged_dot_general(one, matrices, some, plain, group_offset=np.array([1])),
          lax.ragged_dot(one, matrices, some, group_offset=np.array([1])))  # fmt: skip


def test_sums_divided_in_groups():
    x, y = normal(4, 3, 2), normal(2, 4, 3)  # summed over (3, 4); ragged is the 4 of each of 3
    x[3] = np.inf  # of no group
    sizes = np.array([[1, 1], [0, 3], [2, 0]])
    numbers = Ragged((((1, 0), (2, 1)), ((), ())), [0], [])
    want = np.zeros((2, 2, 2))
    for j in range(3):
        for g, (start, end) in enumerate(bounds(sizes[j])):
            want[g] += np.einsum("im,ni->mn", x[start:end, j], y[:, start:end, j])
    close(lax.ragged_dot_general(x, y, sizes, numbers), want)


def test_shared_axes_in_groups_change_nothing():
    x, y = normal(4, 2, 3), normal(4, 3, 2)
    numbers = Ragged((((2,), (1,)), ((0,), (0,))), [0], [])
    close(lax.ragged_dot_general(x, y, np.array([1, 3]), numbers), x @ y)


def test_roles_of_axes_are_checked():
    x, w, sizes = normal(4, 2), normal(3, 2, 5), np.array([1, 1, 2])
    dots = (((1,), (1,)), ((), ()))
    for numbers in (3, Ragged(dots, [0, 1], [0]), Ragged(dots, [0], []), Ragged(dots, [0], [1])):
        with pytest.raises(TypeRule):
            lax.ragged_dot_general(x, w, sizes, numbers)
    with pytest.raises(AxisError):
        lax.ragged_dot_general(x, w, sizes, Ragged(dots, [7], [0]))
    for wrong in (np.ones(3), np.array([1, 3]), np.ones((2, 3), int)):
        with pytest.raises(TypeRule):
            lax.ragged_dot_general(x, w, wrong, Ragged(dots, [0], [0]))


# ---- convolutions --------------------------------------------------------------------------


def windows_of(x, size, stride, pads, base, spread):
    """(n, c, elements..., places...) by loops, of (n, c, h, w)."""
    n, c, *space = x.shape
    wide = np.zeros((n, c, *[(d - 1) * b + 1 for d, b in zip(space, base)]), x.dtype)
    wide[:, :, :: base[0], :: base[1]] = x
    wide = np.pad(wide, [(0, 0), (0, 0), *pads])
    count = [(d - (k - 1) * s - 1) // t + 1
             for d, k, s, t in zip(wide.shape[2:], size, spread, stride)]  # fmt: skip
    out = np.zeros((n, c, *size, *count), x.dtype)
    for i, j, p, q in itertools.product(*map(range, (*size, *count))):
        out[:, :, i, j, p, q] = wide[
            :, :, p * stride[0] + i * spread[0], q * stride[1] + j * spread[1]
        ]
    return out


@pytest.mark.parametrize("numbers", [None, ("NHWC", "HWIO", "NHWC"), ("WNCH", "OWHI", "CHNW")])
def test_patches_and_local_convolutions(numbers):
    x = normal(2, 3, 5, 4)
    x[0, 0, 0, 0] = np.inf  # moved, not multiplied
    size, stride, base, spread = (2, 3), (1, 2), (2, 1), (1, 1)
    pads = [(1, 0), (0, 2)]
    cut = windows_of(x, size, stride, pads, base, spread)
    n, c, *_, h, w = cut.shape
    want = cut.reshape(n, c * 6, h, w)
    place = lambda v, text, names: np.transpose(v, [names.index(a) for a in text])  # noqa: E731
    given, back, sizes = x, (lambda v: v), size
    if numbers is not None:
        space = [a for a in numbers[1] if a in "HW"]
        sizes = tuple([size["HW".index(a)] for a in space])
        order = lambda vs: tuple([vs["HW".index(a)] for a in space])  # noqa: E731
        stride, base, spread, pads = map(order, (stride, base, spread, pads))
        given = place(x, numbers[0], "NCHW")
        back = lambda v: np.transpose(v, [numbers[2].index(a) for a in "NCHW"])  # noqa: E731
        if space == ["W", "H"]:  # elements of a window are in the order of the kernel's axes
            want = cut.swapaxes(2, 3).reshape(n, c * 6, h, w)
    how = dict(lhs_dilation=base, rhs_dilation=spread, dimension_numbers=numbers)
    got = lax.conv_general_dilated_patches(given, sizes, stride, pads, **how)
    np.testing.assert_array_equal(back(np.asarray(got)), want)
    kernel = normal(4, c * 6, h, w)
    x[0, 0, 0, 0] = 1
    given = x if numbers is None else place(x, numbers[0], "NCHW")
    kernels = kernel if numbers is None else place(kernel, numbers[1], "OIHW")
    want = np.nan_to_num(want, posinf=1.0)
    got = lax.conv_general_dilated_local(given, kernels, stride, pads, sizes, **how)
    close(back(np.asarray(got)), np.einsum("nihw,oihw->nohw", want, kernel))


def test_shapes_of_convolutions():
    last = ("NHC", "HIO", "NHC")
    x, y = np.ones((2, 9, 3), np.float32), np.ones((4, 3, 5), np.float32)
    for padding in ("SAME", "VALID", [(2, 1)]):
        a = lax.conv_general_dilated(x, y, (2,), padding, dimension_numbers=last)
        assert lax.conv_general_shape_tuple(x.shape, y.shape, (2,), padding, last) == a.shape
        b = lax.conv_transpose(x, y, (2,), padding, dimension_numbers=last)
        assert lax.conv_transpose_shape_tuple(x.shape, y.shape, (2,), padding, last) == b.shape
    assert lax.conv_shape_tuple((4, 3, 9), (6, 3, 2), (2,), "VALID", 2) == (2, 6, 4)
    assert lax.conv_general_permutations(last) == ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    got = lax.reduce_window_shape_tuple((8, 7), (2, 3), (2, 1), [(0, 0), (1, 1)], (1, 2), (2, 1))
    assert got == lax.reduce_window(np.ones((8, 7)), 0.0, lax.add, (2, 3), (2, 1),
                                    [(0, 0), (1, 1)], (1, 2), (2, 1)).shape  # fmt: skip


@pytest.mark.parametrize(
    ("size", "stride", "pads"), [(3, 2, (1, 0)), (2, 3, (0, 1)), (4, 1, (1, 2))]
)
def test_consistent_padding_undoes_a_convolution(size, stride, pads):
    """A transposed convolution, with the kernel transposed, is the transpose of the convolution."""
    kernel, y = normal(size, 1, 1), normal(1, 5, 1)
    n = (5 - 1) * stride + size - sum(pads)
    columns = [
        lax.conv_general_dilated(e.reshape(1, n, 1), kernel, (stride,), [pads],
                                 dimension_numbers=("NHC", "HIO", "NHC"))
        for e in np.eye(n, dtype=np.float32)
    ]  # fmt: skip
    matrix = np.stack([np.asarray(c).ravel() for c in columns], 1)
    got = lax.conv_transpose(y, kernel, (stride,), [pads], transpose_kernel=True,
                             use_consistent_padding=True)  # fmt: skip
    close(np.ravel(got), matrix.T @ y.ravel())


# ---- places --------------------------------------------------------------------------------


def test_elements_at_places_along_axes():
    x = RNG.integers(0, 100, (3, 4, 5))
    i, j = np.array([0, -1, 9]), np.array([3, 1, -9])
    want = x[np.clip([0, 2, 9], 0, 2), :, np.clip([3, 1, -4], 0, 4)]
    np.testing.assert_array_equal(lax.index_take(x, (i, j), (0, 2)), want)
    np.testing.assert_array_equal(lax.index_take(x, (j, i), (2, 0)), want)


def test_function_of_elements_as_often_as_they_are_named():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    x, at = np.arange(5, dtype=np.float32), np.array([[1], [3], [1], [9]])
    f = lambda v, **how: lax.scatter_apply(  # noqa: E731
        v, at, lambda e: e * 10, numbers, update_shape=(4,), **how
    )
    np.testing.assert_array_equal(f(x), [0, 100, 2, 30, 4])
    np.testing.assert_array_equal(plait.jit(f)(x), [0, 100, 2, 30, 4])
    np.testing.assert_array_equal(f(x, mode="clip"), [0, 100, 2, 30, 40])
    np.testing.assert_array_equal(f(x, unique_indices=True), [0, 10, 2, 30, 4])
    with pytest.raises(TypeRule, match="returns"):
        lax.scatter_apply(x, at, lambda e: e[:1], numbers, update_shape=(4,))


@pytest.mark.parametrize("axis", [0, 1])
def test_greatest_and_least(axis):
    x = normal(4, 5)
    for f, order in ((lax.approx_max_k, -x), (lax.approx_min_k, x)):
        want = np.argsort(order, axis, kind="stable")
        values, places = f(x, 2, reduction_dimension=axis)
        np.testing.assert_array_equal(places, np.take(want, [0, 1], axis))
        np.testing.assert_array_equal(values, np.take_along_axis(x, np.asarray(places), axis))
        assert f(x, 2, axis, aggregate_to_topk=False)[0].shape == x.shape


# ---- named operations ----------------------------------------------------------------------


def test_composite():
    f = lax.composite(lambda x, *, by, note=None: {"out": x * by}, "my.scaled", 3)
    assert f(2.0, by=3.0)["out"].item() == 6
    text = plait.jit(lambda x: f(x, by=3.0, note='a "b"')).lower(2.0).as_text()
    assert 'stablehlo.composite "my.scaled"' in text and "version = 3" in text
    assert "by = 3.0" in text and plait.jit(lambda x: f(x, by=2))(2.0)["out"].item() == 4
    y = np.ones(3, np.float32)
    closed = lax.composite(lambda x: x + y, "my.closed")
    np.testing.assert_array_equal(plait.jit(closed)(1.0), [2, 2, 2])
    with pytest.raises(TypeRule, match="not an attribute"):
        f(2.0, by=plait.numpy.ones(2))


def test_stage_and_sizes_as_values():
    assert isinstance(lax.stage(np.ones(2)), plait.Array) and lax.stage(3).weak_type
    assert np.asarray(lax.shape_as_value((2, 0, 3))).tolist() == [2, 0, 3]
    assert lax.shape_as_value(()).shape == (0,)
    assert lax.dce_sink({"a": np.ones(2)}) is None


def test_windows_and_greatest_that_can_not_be():
    x = np.ones(3, np.float32)
    pool = lambda f, window=(2,), x=x, start=0.0: lax.reduce_window(x, start, f, window)  # noqa: E731
    np.testing.assert_array_equal(pool(lambda a, b: a + b), [2, 2])
    with pytest.raises(TypeRule, match="window_dimensions"):
        pool(lax.add, (0,))
    for f, tree, start in (
        (lambda a, b: [a + b], x, 0.0),
        (lambda a, b: a[0] + b[0], [x], [0.0]),
        (lambda a, b: (a[0] + b[0], a[1]), [x, x], [0.0, 0.0]),
    ):
        with pytest.raises(plait.errors.TreeMismatch, match="another structure than it takes"):
            pool(f, x=tree, start=start)
    long = plait.ShapeDtypeStruct((2, 2**31), "bfloat16")
    fits = plait.eval_shape(lambda x: lax.top_k(x, 3), long)
    assert [v.shape for v in fits] == [(2, 3), (2, 3)]
    for n in (2**31 + 1, 2**40):
        with pytest.raises(TypeRule, match="int32"):
            plait.eval_shape(lambda x: lax.top_k(x, 3), plait.ShapeDtypeStruct((n,), "bfloat16"))


def test_greater_and_smaller_sizes():
    import plait.core as core

    (b,) = plait.ext.sizes.symbolic_dims("b")
    assert (core.max_dim(3, 4), core.min_dim(3, 4)) == (4, 3)
    assert (core.max_dim(b, 1), core.min_dim(b, 1)) == (b, 1)  # sizes are 1 or more
