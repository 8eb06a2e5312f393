"""Constraints on sizes: an exported function takes exactly the sizes that satisfy all of them.

Invariant: which sizes satisfy a constraint is found by trying whole numbers in Python.
"""

import copy
import itertools
import pickle

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import DimMismatch, PlaitError, TypeRule, UndecidedDim
from plait_export import SymbolicScope, deserialize, export, symbolic_args_specs, symbolic_shape

MOST = 12
"""Sizes that are tried."""


def holds(constraints, sizes):
    known = {"mod": lambda a, b: a % b, "floordiv": lambda a, b: a // b, "max": max, "min": min}
    return all(eval(c, known, sizes) for c in constraints)


def admitted(names, others, constraints):
    """{sizes of names: the sizes of the other names with which all constraints hold}."""
    found = {}
    for at in itertools.product((1, 2, 3, 4, 8), repeat=len(names)):
        found[at] = [
            rest
            for rest in itertools.product(range(1, MOST), repeat=len(others))
            if holds(constraints, dict(zip([*names, *others], [*at, *rest])))
        ]
    return found


DETERMINED = [
    ("a,b", "", ["a == b"]), ("a,b", "", ["a == 2*b"]), ("a,b", "", ["a >= b"]),
    ("a,b", "", ["mod(a, b) == 0"]), ("a,b", "", ["a + b == 7"]), ("a,b", "", ["a*b <= 6"]),
    ("a,b", "", ["max(a, b) == 4"]), ("a,b", "", ["2 <= a", "a < b"]), ("a", "", ["a >= 3"]),
    ("a", "b", ["a == 2*b"]), ("a", "b", ["a + b == 4"]), ("a", "b", ["b == 3"]),
    ("a", "b", ["a*b == 4"]), ("a", "b", ["a == 2*b", "b >= 2"]), ("a", "bc", ["a == b", "b == c"]),
    ("a,b", "c", ["a + b == c", "c <= 5"]), ("a", "bc", ["a == 2*b", "b == 2*c"]),
]  # fmt: skip
OPEN = [
    ("a", "b", ["a >= b"]), ("a", "b", ["a >= b + 5"]), ("a", "b", ["b >= 3"]),
    ("a", "bc", ["a == b + c"]), ("a,b", "c", ["a + b >= c"]), ("a", "b", ["mod(b, a) == 0"]),
    ("a", "bc", ["a == 2*b", "b <= c"]), ("a", "b", ["floordiv(b, 2) == a"]),
]  # fmt: skip


def exported_of(shape, constraints):
    spec = plait.ShapeDtypeStruct(symbolic_shape(shape, constraints=constraints), np.int8)
    return export(lambda x: x + 1)(spec)


@pytest.mark.parametrize(("shape", "others", "constraints"), DETERMINED)
def test_calls_are_taken_where_all_constraints_hold(shape, others, constraints):
    names = shape.split(",")
    made = exported_of(shape, constraints)
    for e in (made, deserialize(made.serialize())):
        for at, rest in admitted(names, others, constraints).items():
            given = plait.ShapeDtypeStruct(at, np.int8)
            if rest:
                assert plait.eval_shape(e.call, given).shape == at
            else:
                with pytest.raises(DimMismatch):
                    plait.eval_shape(e.call, given)
    at = next(at for at, rest in admitted(names, others, constraints).items() if rest)
    np.testing.assert_array_equal(made.call(np.ones(at, np.int8)), np.full(at, 2))


@pytest.mark.parametrize(("shape", "others", "constraints"), OPEN)
def test_constraints_that_no_call_could_check_are_refused(shape, others, constraints):
    ways = admitted(shape.split(","), others, constraints).values()
    assert max(map(len, ways)) > 1  # there are sizes of the arguments that leave a name open
    with pytest.raises(UndecidedDim, match="about [bc], which the sizes of arguments do not"):
        exported_of(shape, constraints)


def test_a_size_that_equations_determine_is_computed():
    a, b = symbolic_shape("a, b", constraints=["a == 2*b"])
    e = export(lambda x: lax.broadcast(x[:b], (b,)))(plait.ShapeDtypeStruct((a,), np.int8))
    for n in (2, 6):
        x = np.arange(n, dtype=np.int8)
        want = np.broadcast_to(x[: n // 2], (n // 2, n // 2))
        np.testing.assert_array_equal(e.call(x), want)
        np.testing.assert_array_equal(deserialize(e.serialize()).call(x), want)


# ---- scopes ------------------------------------------------------------------------------------


def in_two_scopes():
    """Each with sizes of one name, and the same constraints, that were never said to be equal."""
    x = np.ones((3, 2), np.float32)
    return {
        "shapes": [symbolic_shape("w, h"), symbolic_shape("w, k")],
        "constraints": [symbolic_shape("w, h", constraints=["w >= 2"]) for _ in range(2)],
        "one given": [symbolic_shape("w, h"), symbolic_shape("w, h", scope=SymbolicScope())],
        "types": [symbolic_args_specs(x, "w, h").shape for _ in range(2)],
        "pickled": [symbolic_shape("w, h"), pickle.loads(pickle.dumps(symbolic_shape("w, h")))],
    }


@pytest.mark.parametrize("how", in_two_scopes())
def test_sizes_of_two_scopes_are_not_one(how):
    first, second = in_two_scopes()[how]
    assert first[0] != second[0]
    with pytest.raises(TypeRule, match="two scopes"):
        first[0] + second[0]
    a, b = (plait.ShapeDtypeStruct(s, np.float32) for s in (first, second))
    for f in (lambda x, y: x.sum() + y.sum(), lambda x, y: lax.concatenate([x, y], 1)):
        with pytest.raises(PlaitError, match="two scopes"):
            export(f)(a, b)


def test_sizes_of_one_scope_are_one():
    scope = SymbolicScope(["w >= 2"])
    first, second = symbolic_shape("w, h", scope=scope), symbolic_shape("w, k", scope=scope)
    assert first[0] == second[0]
    for again in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert again == first
    apart = symbolic_shape("w, h")
    assert pickle.loads(pickle.dumps(apart)) == apart
    a, b = (plait.ShapeDtypeStruct(s, np.float32) for s in (first, second))
    e = export(lambda x, y: lax.concatenate([x, y], 1))(a, b)
    assert e.call(np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)).shape == (3, 3)
    with pytest.raises(DimMismatch):
        e.call(np.ones((3, 2), np.float32), np.ones((4, 1), np.float32))
