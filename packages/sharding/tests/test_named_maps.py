"""xmap: what is refused, and with what words.

Invariant: every case here is refused before anything is mapped, so no other plugin is needed; each
text names the user's axis, and two cases have two texts.
"""

import numpy as np
import pytest

import plait
from plait import Mesh, lax, xmap
from plait.errors import AxisError
from plait.sharding import SerialLoop

A = np.ones((4, 6), np.float32)


def same(*xs):
    return xs[0] if len(xs) == 1 else xs


def called(*args, ins=["a", ...], outs=["a", ...], f=same, **options):  # noqa: B006
    return lambda: xmap(f, ins, outs, **options)(*(args or (A,)))


def made(ins=["a", ...], outs=["a", ...], **options):  # noqa: B006
    return lambda: xmap(same, ins, outs, **options)


REFUSED = {
    # names of axes
    "no function": (lambda: xmap(3, ["a"], ["a"]), TypeError, "xmap needs a function, not 3"),
    "no naming": (made(ins="a"), TypeError, "in_axes is 'a', which is neither a list of names"),
    "none": (made(ins=None), TypeError, "in_axes is None, which is neither"),
    "none inside": (made(ins=(None, {0: "a"})), TypeError, "in_axes[0] is None, which is neither"),
    "swapped": (made(ins={"a": 0}), TypeError, "in_axes is {'a': 0}, which is neither"),
    "swapped results": (made(outs=({"a": 0},)), TypeError, "out_axes[0] is {'a': 0}, which"),
    "a name that is none": (made(ins={0: 3}), TypeError, "in_axes is {0: 3}, which is neither"),
    "dots before the end": (made(ins=[..., "a"]), TypeError, "in_axes has ... before its end"),
    "one name twice": (made(ins=["a", "a"]), AxisError, "in_axes names two axes of one array 'a'"),
    "one name twice in results": (
        made(outs={0: "a", 1: "a"}),
        AxisError,
        "out_axes names two axes of one array 'a'",
    ),
    "two names of one axis": (
        called(ins={0: "a", -2: "b"}, outs={}),
        AxisError,
        "names axis 0 of argument `xs[0]` of type f32[4,6] both 'a' and 'b'",
    ),
    "no such axis": (
        called(ins={2: "a"}),
        AxisError,
        "names axis 2 'a', and argument `xs[0]`",
        "2 axes",
    ),
    "no such negative axis": (called(ins={-3: "a"}), AxisError, "names axis -3 'a'"),
    "another rank": (
        called(ins=["a"]),
        AxisError,
        "argument `xs[0]` of type f32[4,6] has 2 axes, and ['a'] says that it has 1",
    ),
    "another rank of a result": (
        called(outs=["a"]),
        AxisError,
        "the result, of type f32[6] and with 1 named axes more, has 2 axes, and ['a'] says",
    ),
    "no such axis of a result": (
        called(outs={2: "a"}),
        AxisError,
        "names axis 2 'a', and the result, of type f32[6]",
    ),
    "arguments": (called(A, A, ins=(["a", ...],)), TypeError, "in_axes does not fit"),
    "results": (called(outs=(["a", ...],)), TypeError, "out_axes does not fit"),
    "by name": (
        lambda: xmap(same, ["a", ...], ["a", ...])(x=A),
        TypeError,
        "arguments are positional, and 'x' was given by name",
    ),
    "no array": (called("s"), TypeError, "'s' of type str", "`xs[0]`"),
    # sizes
    "two sizes": (
        called(A, A.T, outs=(["a", ...], {0: "a"})),
        AxisError,
        "The size of axis 'a' was previously inferred to be 4 (from argument `xs[0]`",
        "but found an axis of size 6: axis 0 of argument `xs[1]`",
    ),
    "two axes of one argument and another": (
        called(A, A, ins=({0: "a"}, {1: "a"})),
        AxisError,
        "axis 1 of argument `xs[1]`",
    ),
    "a size that is not the argument's": (
        called(axis_sizes={"a": 5}),
        AxisError,
        "The size of axis 'a' was previously inferred to be 5 (from axis_sizes)",
    ),
    "no size": (made(axis_sizes={"b": "x"}), TypeError, "axis 'b' has size 'x'"),
    "a negative size": (made(axis_sizes={"b": -1}), TypeError, "axis 'b' has size -1"),
    "sizes of no names": (
        made(axis_sizes={0: 1}),
        TypeError,
        "axis_sizes has 0, which is not a name",
    ),
    "sizes that are not dict": (made(axis_sizes=["a"]), TypeError, "axis_sizes is ['a']"),
    # resources
    "resources that are not dict": (made(axis_resources="x"), TypeError, "axis_resources is 'x'"),
    "no resource": (
        made(axis_resources={"a": 3}),
        TypeError,
        "axis_resources gives axis 'a' the resource 3",
    ),
    "a resource twice": (
        made(axis_resources={"a": ("x", "x")}),
        ValueError,
        "axis_resources gives axis 'a' the resource 'x' twice",
    ),
    "two loops": (
        made(axis_resources={"a": (SerialLoop(2), SerialLoop(2))}),
        ValueError,
        "gives axis 'a' two loops",
    ),
    "no turns": (lambda: SerialLoop(0), TypeError, "positive number of turns, not 0"),
    "no such resource": (
        called(axis_resources={"a": "q"}),
        RuntimeError,
        "axis 'a' is to be laid out on 'q', and Mesh('x': 2, 'y': 4) has no such axis",
    ),
    "not divisible": (
        called(A[:3], axis_resources={"a": "x"}),
        ValueError,
        "Size of axis 'a' (3) is not divisible by the total resource count (2 from 'x')",
    ),
    "not divisible by devices and turns": (
        called(axis_resources={"a": ("x", SerialLoop(4))}),
        ValueError,
        "Size of axis 'a' (4) is not divisible by the total resource count (8 from 'x', SerialLoop",
    ),
    # where axes meet
    "both in an argument": (
        called(ins=["a", "b"], outs={}, axis_resources={"a": "x", "b": "x"}),
        AxisError,
        "axes 'a' and 'b' are both laid out on 'x', and coincide in an argument",
    ),
    "both in what an operation returns": (
        called(
            A,
            A[:2],
            f=lambda x, y: lax.psum(x * y, ("a", "b")),
            ins=(["a", ...], ["b", ...]),
            outs={},
            axis_resources={"a": "x", "b": "x"},
        ),
        AxisError,
        "axes 'a' and 'b' are both laid out on 'x', and coincide in the operation core.mul",
    ),
    "both in a loop": (
        called(
            A,
            A[:2],
            f=lambda x, y: lax.fori_loop(0, 2, lambda i, c: c + y[0], x[0]) * 0 + 1,
            ins=(["a", ...], ["b", ...]),
            outs={},
            axis_resources={"a": "x", "b": "x"},
        ),
        AxisError,
        "'a' and 'b'",
        "coincide in the operation core.add",
    ),
    "a collective along one of what varies along the other": (
        called(
            A,
            A[:2],
            f=lambda x, y: lax.psum(y, "a"),
            ins=(["a", ...], ["b", ...]),
            outs=["b", ...],
            axis_resources={"a": "x", "b": "x"},
        ),
        AxisError,
        "axes 'a' and 'b' are both laid out on 'x', and coincide in the operation core.psum",
    ),
    "a collective that the other decides on": (
        called(
            A,
            A[:2],
            f=lambda x, y: lax.cond(y[0] > 0, lambda: lax.psum(x[0] * 0, "a"), lambda: 0.0) * 0,
            ins=(["a", ...], ["b", ...]),
            outs=["b"],
            axis_resources={"a": "x", "b": "x"},
        ),
        AxisError,
        "axes 'a' and 'b' are both laid out on 'x', and coincide in the operation core.cond",
    ),
    "both in a result": (
        called(
            A[:, 0],
            outs=["a", "b"],
            axis_sizes={"b": 2},
            axis_resources={"a": "x", "b": "x"},
        ),
        AxisError,
        "axes 'a' and 'b' are both laid out on 'x', and coincide in the result",
    ),
    # results
    "a result without its axis": (
        called(outs={}),
        AxisError,
        "the result of type f32[6] is mapped along 'a', and its out_axes has only []",
    ),
    "a part of the result": (
        called(A, A, ins=({0: "a"}, {1: "b"}), outs=({0: "a"}, {})),
        AxisError,
        "the result[1] of type f32[4] is mapped along 'b', and its out_axes has only []",
    ),
    "a collective over turns": (
        called(f=lambda x: lax.psum(x, "a"), outs={}, axis_resources={"a": SerialLoop(2)}),
        AxisError,
        "a collective speaks of axis 'a', which is done in turns (SerialLoop)",
    ),
    "no such name": (called(f=lambda x: lax.psum(x, "q")), AxisError, "no axis named 'q'"),
    "the mesh is not bound": (
        called(f=lambda x: lax.psum(x, "x"), axis_resources={"a": "x"}),
        AxisError,
        "no axis named 'x'",
    ),
}


@pytest.mark.feature("S23")
@pytest.mark.parametrize("name", REFUSED)
def test_each_mistake_has_its_own_text(name, mesh, told):
    f, kind, *texts = REFUSED[name]
    with mesh:
        told(f, *texts, kind=kind)


@pytest.mark.feature("S23")
def test_texts_differ(mesh):
    """Of 23 mistakes at least; what differs is not the place alone."""
    texts = set()
    for f, kind, *_ in REFUSED.values():
        with mesh, pytest.raises(kind) as e:
            f()
        texts.add(str(e.value.what))
    assert len(texts) == len(REFUSED) >= 23


@pytest.mark.feature("S20")
def test_names_of_results_are_names_of_something(told):
    text = (
        "All axis names appearing in out_axes must also appear in in_axes or axis_sizes, but the "
        "following are missing: {'c'}"
    )
    told(made(outs=["c", ...]), text, kind=ValueError)
    told(made(outs=({0: "a"}, {"r": ["a", "c"]})), text, kind=ValueError)
    told(made(outs=["c", "b"]), text.replace("{'c'}", "{'b', 'c'}"), kind=ValueError)
    made(outs=["c", ...], axis_sizes={"c": 2})()


@pytest.mark.feature("S21")
def test_axes_with_resources_are_axes_of_something(told):
    text = (
        "All axes that were assigned resources have to appear in in_axes or axis_sizes, but the "
        "following are missing: {'b'}"
    )
    told(made(axis_resources={"b": "x"}), text, kind=ValueError)
    made(axis_resources={"b": "x"}, axis_sizes={"b": 2})()


@pytest.mark.feature("S23")
def test_no_mesh_and_no_platform(told):
    text = "axis 'a' is to be laid out on 'x', and no mesh is in context"
    told(called(axis_resources={"a": "x"}), text, kind=RuntimeError)
    told(made(backend="abacus"), "abacus", kind=RuntimeError)
    told(lambda: Mesh(np.arange(4).reshape(2, 2), ("x",)), "2 axes, and the names", kind=ValueError)


def test_where_the_old_names_are():
    from plait.experimental import maps

    assert maps.xmap is xmap is plait.xmap is plait.sharding.xmap
    assert maps.Mesh is maps.mesh is Mesh and maps.SerialLoop is SerialLoop
