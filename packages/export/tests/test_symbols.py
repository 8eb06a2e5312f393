"""Shapes and types of arguments with sizes known by name."""

import numpy as np
import pytest

import plait
from plait.errors import ProgramError
from plait.ext.errors import TreeMismatch, TypeRule
from plait_export import SymbolicScope, export, is_symbolic_dim, symbolic_args_specs, symbolic_shape

X = np.zeros((4, 3, 2), np.float32)


@pytest.mark.parametrize(
    ("text", "like", "want"),
    [
        ("b, 3", None, "(b, 3)"),
        ("(b, 2*b + 1)", None, "(b, 2*b + 1)"),
        ("[b]", None, "(b,)"),
        ("", None, "()"),
        ("b,", None, "(b,)"),
        ("(b + 1) * 2, (c)", None, "(2*b + 2, c)"),
        ("floordiv(b, 2), mod(b, 3), max(b, c)", None, "(floordiv(b, 2), mod(b, 3), max(b, c))"),
        ("b, _, _", (4, 3, 2), "(b, 3, 2)"),
        ("b, ...", (4, 3, 2), "(b, 3, 2)"),
        ("b, _, 2", (None, 3, None), "(b, 3, 2)"),
        ("b, ...", (None, 3), "(b, 3)"),
        ("..., c", (4, 3, 2), "(4, 3, c)"),
        ("b, ..., c", (4, 3), "(b, c)"),
        ("(b, ...)", (4,), "(b,)"),
        ("...", (4, 3), "(4, 3)"),
        (None, (4, 3), "(4, 3)"),
        ("_, max(b, 2), _", (4, 3, 2), "(4, max(b, 2), 2)"),
    ],
)
def test_texts(text, like, want):
    assert str(symbolic_shape(text, like=like)) == want


@pytest.mark.parametrize(
    ("text", "like"),
    [("b, _", None), ("_, _", (3,)), ("b, ...", None), ("..., ...", (3, 4)), ("_", (3, 4)),
     ("b, _", (3, None)), ("...", (None,)), (None, (3, None)),
     ("a, b, ...", (3,)), (None, None)],
)  # fmt: skip
def test_placeholders_that_nothing_fills(text, like):
    with pytest.raises(TypeRule) as e:
        symbolic_shape(text, like=like)
    assert e.value.fix


@pytest.mark.parametrize(
    ("text", "like"),
    [("3", (4,)), ("b, 3", (None, 4)), ("b, 3, ...", (1, 4, 2)), ("b", (3, 4)), ("b, c", (3,)),
     ("2, ..., 5", (2, 3, 4))],
)  # fmt: skip
def test_texts_that_contradict_the_shape(text, like):
    with pytest.raises(ValueError, match="size"):
        symbolic_shape(text, like=like)
    if None not in like:
        with pytest.raises(ValueError, match="size"):
            symbolic_args_specs((np.ones(like),), text)


def test_what_can_not_be_read():
    with pytest.raises(ProgramError, match="cannot read sizes"):
        symbolic_shape("b +")
    with pytest.raises(ProgramError):
        symbolic_shape("b", constraints=["b >"])


def test_constraints_and_scopes():
    scope = SymbolicScope(["b >= 4"])
    (b,) = symbolic_shape("b", scope=scope)
    assert b >= 4 and is_symbolic_dim(b) and not is_symbolic_dim(3)
    assert symbolic_shape("b", constraints=["b >= 4"])[0] >= 4
    assert symbolic_shape("b", scope=scope) == (b,)
    with pytest.raises(TypeRule, match="a scope or constraints, and was given both"):
        symbolic_shape("b", scope=scope, constraints=["b >= 5"])
    with pytest.raises(TypeRule, match="a scope or constraints, and was given both"):
        symbolic_args_specs(X, "b, ...", ["b >= 5"], scope)


def test_types_of_arguments():
    tree = {"x": X, "ys": [X[0], 1.0], "z": plait.ShapeDtypeStruct((5,), "bfloat16")}
    specs = symbolic_args_specs(tree, {"x": "b, ...", "ys": None, "z": "b + 1"}, ["b >= 2"])
    assert [repr(s.aval) for s in plait.tree.leaves(specs)] == [
        "f32[b,3,2]", "f32[3,2]", "f32[]*", "bf16[b + 1]",
    ]  # fmt: skip
    b = specs["x"].shape[0]
    assert specs["z"].shape[0] == b + 1 and b.scope.constraints == ("b >= 2",)


def test_one_text_serves_a_whole_tree():
    specs = symbolic_args_specs((X, {"y": X[..., 0]}), "b, ...")
    assert [s.shape[1:] for s in plait.tree.leaves(specs)] == [(3, 2), (3,)]
    assert len({s.shape[0] for s in plait.tree.leaves(specs)}) == 1


def test_texts_that_are_no_prefix():
    with pytest.raises(TreeMismatch, match="shapes_specs"):
        symbolic_args_specs((X, X), ("b, ...",))
    with pytest.raises(TreeMismatch, match="which is not a text or None"):
        symbolic_args_specs(X, 3)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_every_slice_of_every_size(step):
    """Also where nothing is left, and where there was nothing; against numpy."""
    ends = [None, *range(-3, 6)]
    slices = [slice(start, stop, step) for start in ends for stop in ends]
    (b,) = symbolic_shape("b", constraints=["b >= 0"])
    f = plait.jit(lambda x: [x[s] for s in slices])
    e = export(f)(plait.ShapeDtypeStruct((b,), np.float32))
    for n in range(9):
        x = np.arange(n, dtype=np.float32)
        for s, found in zip(slices, e.call(x), strict=True):
            np.testing.assert_array_equal(np.asarray(found), x[s], err_msg=f"{s} of {n}")


def test_a_shape_is_computed_once_in_a_block():
    """However many operations need it."""
    types = symbolic_args_specs((np.ones((4, 3), np.float32),), "b, 3")

    def f(x):
        for k in range(10):
            x = x * 2 + x.sum(1, keepdims=True) + k
        return x

    text = export(f)(*types).mlir_module()
    assert text.count("stablehlo.dynamic_broadcast_in_dim") >= 20
    assert text.count("stablehlo.concatenate") <= 4
