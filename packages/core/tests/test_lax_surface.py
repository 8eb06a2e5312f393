"""plait.lax as a surface: names, what callers may write by name, examples, layouts, bad input.

Invariant: signatures are written out as literals; an example is run with nothing but what its
function's module has.
"""

import doctest
import inspect
from importlib.metadata import distribution

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import AxisError, PlaitError, SubscriptError, TreeMismatch, TypeRule

F = np.ones((2, 3), np.float32)
V = np.arange(3, dtype=np.float32)
I = np.array([1, 2, 3], np.int32)

NEED_A_NAMED_AXIS = {
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "ragged_all_to_all",
}  # fmt: skip
"""Nothing in core binds a name, so they have no example there."""

LATER = [e.name for e in distribution("plait-core").entry_points if e.group == "plait.lax"]
"""Names that are found at their first use."""

FUNCTIONS = [
    n for n in (*lax.__all__, *LATER)
    if callable(getattr(lax, n)) and not isinstance(getattr(lax, n), type)
    and n != "DotDimensionNumbers"
]  # fmt: skip


def written(name):
    """The function as it is written: what explains refused calls is around some."""
    return inspect.unwrap(getattr(lax, name))


def example(name):
    f = written(name)
    return doctest.DocTestParser().get_doctest(f.__doc__ or "", dict(f.__globals__), name, None, 0)


def test_every_function_has_an_example():
    assert {n for n in FUNCTIONS if not example(n).examples} == NEED_A_NAMED_AXIS


def test_examples_run():
    """Of what is made from tables, and of what is defined elsewhere; the others are run with their
    modules."""
    for name in FUNCTIONS:
        f = written(name)
        if f.__globals__["__name__"].startswith("plait.lax."):
            if f.__qualname__ == f.__code__.co_qualname:
                continue
        assert doctest.DocTestRunner(verbose=False).run(example(name)).failed == 0, name


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("sin", "x, *, accuracy"), ("exp2", "x, *, accuracy"), ("sign", "x"),
        ("mul", "x, y, *, out_dtype"),
        ("igamma", "a, x"), ("zeta", "x, q"), ("polygamma", "m, x"), ("nextafter", "x1, x2"),
        ("axis_size", "axis_name"), ("psum", "x, axis_name, *, axis_index_groups"),
        ("all_to_all", "x, axis_name, split_axis, concat_axis, *, axis_index_groups, tiled"),
        ("psum_scatter", "x, axis_name, *, scatter_dimension, axis_index_groups, tiled"),
        ("pswapaxes", "x, axis_name, axis, *, axis_index_groups"), ("map", "f, xs, *, batch_size"),
        ("dynamic_slice", "operand, start_indices, slice_sizes, *, allow_negative_indices"),
        ("reshape", "operand, new_sizes, dimensions, *, out_sharding"),
        ("full", "shape, fill_value, dtype, *, sharding"),
        ("switch", "index, branches, *operands, operand"),
        ("cond", "pred, true_fun, false_fun, *operands, operand"),
    ],
)  # fmt: skip
def test_signatures(name, signature):
    said = [p.strip() for p in signature.split(",")]
    keyword_only = said.index("*") if "*" in said else len(said)
    found = inspect.signature(getattr(lax, name)).parameters.values()
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in found]
    assert names == [n for n in said if n != "*"]
    kinds = [p.kind is p.KEYWORD_ONLY for p in found if not name.startswith(("cond", "switch"))]
    assert kinds == [i >= keyword_only for i in range(len(kinds))]


def test_arguments_by_name():
    assert lax.sin(x=0.0).item() == 0 and lax.add(x=1, y=2).item() == 3
    assert lax.igamma(a=1.0, x=0.0).item() == 0 and lax.nextafter(x1=1.0, x2=1.0).item() == 1
    assert lax.ConvDimensionNumbers(lhs_spec=(0, 1), rhs_spec=(0, 1), out_spec=(0, 1)).lhs_spec
    np.testing.assert_array_equal(lax.bessel_i0e(x=np.zeros(2)), np.ones(2))


def test_legacy_operands_of_branches():
    up, down = (lambda x: x + 1), (lambda x: x - 1)
    assert lax.cond(True, up, down, operand=1.0).item() == 2
    assert lax.cond(False, 1.0, up, 5.0, down).item() == 4
    assert lax.cond(True, lambda x: x, lambda x: x, operand=None) is None
    assert lax.switch(1, [up, down], operand=1.0).item() == 0
    with pytest.raises(TypeRule, match="by position"):
        lax.cond(True, up, down, 1.0, operand=1.0)


def test_negative_places_may_be_excluded():
    x = np.arange(10).reshape(2, 5)
    mixed = lambda i: lax.dynamic_slice(x, (i, i), (1, 2), allow_negative_indices=(True, False))  # noqa: E731
    np.testing.assert_array_equal(plait.jit(mixed)(-1), x[1:, :2])  # clamped, not from the end
    np.testing.assert_array_equal(lax.dynamic_slice(x, (-1, -2), (1, 2)), x[1:, 3:])
    with pytest.raises(SubscriptError, match="negative"):
        lax.dynamic_index_in_dim(x, -1, allow_negative_indices=False)


@pytest.mark.parametrize("size", [0, 1, 3, 7, 9])
def test_map_in_batches(size):
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    out = lax.map(lambda r: {"s": r.sum(), "r": r * 2}, x, batch_size=size)
    np.testing.assert_array_equal(out["s"], x.sum(1))
    np.testing.assert_array_equal(out["r"], x * 2)


def test_accuracy():
    highest = lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST)  # noqa: E731
    near = lambda x: lax.tan(x, accuracy=lax.Tolerance(1e-5, 0.0, 2))  # noqa: E731
    np.testing.assert_allclose(highest(V), np.exp(V), rtol=1e-6)
    np.testing.assert_allclose(plait.jit(near)(V), np.tan(V), rtol=1e-5)
    assert "HIGHEST" in plait.jit(highest).lower(V).as_text()
    assert "ulps = 2" in plait.jit(near).lower(V).as_text()
    assert "accuracy" not in plait.jit(lax.exp).lower(V).as_text()
    np.testing.assert_allclose(lax.exp(V * 1j, accuracy=lax.AccuracyMode.HIGHEST), np.exp(V * 1j),
                               rtol=1e-6)  # fmt: skip
    for wrong in (3, lax.Tolerance(0.0, 1.0, 1), lax.Tolerance(-1.0)):
        with pytest.raises(TypeRule, match="lax.exp"):
            lax.exp(V, accuracy=wrong)


NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))
SWAPPED = lax.GatherDimensionNumbers((), (0,), (0,))

BAD = [
    (AxisError, lambda x: lax.reduce_sum(x, (5,))),
    (AxisError, lambda x: lax.reduce_sum(x, (0, 0))),
    (TypeRule, lambda x: lax.reduce_sum(x, 0)),
    (TypeRule, lambda x: lax.reduce_sum(x, (0.5,))),
    (TypeRule, lambda x: lax.transpose(x, 3)),
    (AxisError, lambda x: lax.transpose(x, (0, 0))),
    (TypeRule, lambda x: lax.slice(x, (0,), (1,))),
    (TypeRule, lambda x: lax.slice(x, (0, 0), (9, 9))),
    (TypeRule, lambda x: lax.slice(x, ("a", 0), (1, 1))),
    (TypeRule, lambda x: lax.slice_in_dim(x, 0, 5, axis=0)),
    (TypeRule, lambda x: lax.split(x, (3, -1))),
    (TypeRule, lambda x: lax.tile(x, (-1, 1))),
    (TypeRule, lambda x: lax.pad(x, 0.0, 3)),
    (TypeRule, lambda x: lax.pad(x, 0.0, [(0, 0, -1)] * 2)),
    (TypeRule, lambda x: lax.concatenate([], 0)),
    (TypeRule, lambda x: lax.concatenate(3, 0)),
    (TypeRule, lambda x: lax.dynamic_slice(x, 0, (1, 1))),
    (TypeRule, lambda x: lax.dynamic_slice(x, (0, 0), (9, 9))),
    (TypeRule, lambda x: lax.dynamic_slice(x, (V, 0), (1, 1))),
    (TypeRule, lambda x: lax.gather(x, np.array([[0]]), 3, (1, 1))),
    (TypeRule, lambda x: lax.scatter_add(x, np.array([[0]]), 1.0, ((None,),))),
    (TypeRule, lambda x: lax.scatter(V, np.array([[0]]), V[:1], NUMBERS, mode="wrap")),
    (TypeRule, lambda x: lax.scatter(I, np.array([[0]]), V[:1], NUMBERS)),
    (TypeRule, lambda x: lax.scatter(V, np.array([[0]]), V[:1], SWAPPED)),
    (TypeRule, lambda x: lax.dynamic_update_slice(I, V[:1], (0,))),
    (TypeRule, lambda x: lax.dynamic_update_index_in_dim(I, 0.5, 0, 0)),
    (TypeRule, lambda x: lax.reduce_and(x, ())),
    (AxisError, lambda x: lax.dot_general(x, x, 3)),
    (TypeRule, lambda x: lax.dot_general(x, x, (((1,), (0,)), ((), ())))),
    (TypeRule, lambda x: lax.dot(x, x, precision="bogus")),
    (AxisError, lambda x: lax.conv_dimension_numbers((1, 2), (1, 2), 3)),
    (PlaitError, lambda x: lax.conv(x, x, ((0, 0),), "VALID")),
    (TypeRule, lambda x: lax.reduce_window(x, 0.0, lax.add, (0.5, 1), (1, 1), "VALID")),
    (TypeRule, lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (0, 1), "VALID")),
    (TypeRule, lambda x: lax.reduce_window(x, 0.0, None, (1, 1), (1, 1), "VALID")),
    (TypeRule, lambda x: lax.reduce(x, np.ones(3), lax.add, (0,))),
    (TypeRule, lambda x: lax.reduce(x, 0.0, lambda a, b: (a, b), (0,))),
    (TypeRule, lambda x: lax.reduce((x, x), (0.0, 0.0), lambda a, b: a[0], (0,))),
    (TreeMismatch, lambda x: lax.reduce_window(x, 0.0, lambda a, b: (a, b), (1,), (1,), "VALID")),
    (TreeMismatch, lambda x: lax.reduce((x, x), 0.0, lambda a, b: a, (0,))),
    (TypeRule, lambda x: lax.top_k(x, 9)),
    (TypeRule, lambda x: lax.top_k(x, 1.5)),
    (TypeRule, lambda x: lax.approx_max_k(I, 1)),
    (TypeRule, lambda x: lax.sort((x, x), num_keys=3)),
    (TypeRule, lambda x: lax.cumsum(x, reverse=np.ones(2))),
    (TypeRule, lambda x: lax.clamp(x, 1.0, x)),
    (TypeRule, lambda x: lax.integer_pow(x, 0.5)),
    (TypeRule, lambda x: lax.reduce_precision(x, 0, 3)),
    (TypeRule, lambda x: lax.round(x, 7)),
    (TypeRule, lambda x: lax.exp2(I)),
    (TypeRule, lambda x: lax.mulhi(x, x)),
    (TypeRule, lambda x: lax.fft(x, "bogus", (3,))),
    (TypeRule, lambda x: lax.scan(3, 0.0, x)),
    (TypeRule, lambda x: lax.scan(lambda c, r: (c, r), 0.0, None, length="a")),
    (TypeRule, lambda x: lax.fori_loop(0, 2, None, x)),
    (TypeRule, lambda x: lax.fori_loop(0, I, lambda i, v: v, x)),
    (TypeRule, lambda x: lax.while_loop(None, lambda v: v, x)),
    (TypeRule, lambda x: lax.map(None, x)),
    (TypeRule, lambda x: lax.map(lambda r: r, x, batch_size=-1)),
    (TypeRule, lambda x: lax.associative_scan(3, x)),
    (TreeMismatch, lambda x: lax.associative_scan(lambda a, b: (a, b), x)),
    (TypeRule, lambda x: lax.switch(0, None, x)),
    (TypeRule, lambda x: lax.switch(0, [3], x)),
    (TypeRule, lambda x: lax.platform_dependent(x)),
    (TypeRule, lambda x: lax.composite(lambda v, k: v, "my.f")(x, k=object())),
    (AxisError, lambda x: lax.psum(x, "nobody")),
    (AxisError, lambda x: lax.psum(x, V)),
    (AxisError, lambda x: lax.psum(x, ())),
    (TypeRule, lambda x: lax.index_take(x, 1, (0,))),
    (TypeRule, lambda x: lax.index_take(x, (I, V), (0, 1))),
    (TypeRule, lambda x: lax.dce_sink(x, prevent_mlir_dce=True)),
    (TypeRule, lambda x: lax.conv_general_dilated_patches(x[None], (0,), (1,), "VALID")),
    (TypeRule, lambda x: lax.scaled_dot(x, x.T, lhs_scale=np.ones((2, 2), np.float32))),
]


@pytest.mark.parametrize("jitted", [False, True])
def test_bad_input_says_what_where_and_what_to_write(jitted):
    for i, (kind, f) in enumerate(BAD):
        with pytest.raises(kind) as caught:
            (plait.jit(f) if jitted else f)(F)
        what, where, *fix = str(caught.value).splitlines()
        assert what and "test_lax_surface.py" in where and fix, i


@pytest.mark.parametrize("f", [
    lambda x, n: lax.reduce_sum(x, (n,)), lambda x, n: lax.slice_in_dim(x, 0, n),
    lambda x, n: lax.top_k(x, n), lambda x, n: lax.tile(x, (n, 1)), lambda x, n: lax.rev(x, (n,)),
])  # fmt: skip
def test_traced_values_are_no_static_arguments(f):
    with pytest.raises(PlaitError, match="test_lax_surface.py"):
        plait.jit(f)(F, 1)
