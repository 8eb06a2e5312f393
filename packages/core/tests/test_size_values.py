"""Symbolic sizes among arrays, and how they are found from the sizes that arrays have.

Invariant: what is measured is compared with the sizes it was measured from; what is computed with
sizes is compared with Python's arithmetic on numbers.
"""

import itertools
import math
import random

import numpy as np
import pytest

import plait
from plait import _control
from plait._ops import elementwise as el
from plait._ops import shape as sh
from plait._types.dims import Dim, Scope, measure_dims, symbolic_dims
from plait.errors import PlaitError, UndecidedDim

F32 = np.float32


# ---- found from several sizes --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "constraints"),
    [
        ("b", ()),
        ("2*b + 3", ()),
        ("a + b, a + 2*b", ()),
        ("a + b, b", ()),
        ("a, a*b", ()),
        ("b, b*c + 1, c*d", ()),
        ("a + b + c, a - b + 20, 2*c", ()),
        ("a", ("a + b == 10",)),
        ("b, floordiv(b, 2) + c", ()),
        ("b, b, 2*b, 3*b + c", ()),
        ("max(b, 3) + c, b", ()),
    ],
)
def test_names_are_measured(text, constraints):
    dims = symbolic_dims(text, Scope(constraints))
    names = sorted({n for d in dims for n in d.variables})
    how = measure_dims(dims)
    assert sorted(how) == sorted({*names, *(["b"] if constraints else [])})
    for values in itertools.product((1, 2, 3, 7), repeat=len(names)):
        sizes = dict(zip(names, values))
        seen = {f"s{i}": d.substitute(sizes) for i, d in enumerate(dims)}
        found = {n: d.substitute(seen) if d.__class__ is Dim else d for n, d in how.items()}
        assert found == (sizes | {"b": 10 - sizes["a"]} if constraints else sizes)


@pytest.mark.parametrize(
    "text", ["a*a", "3*a*a + 2", "a*a, a*b", "b, a*a + b", "a + b*b, a", "a*a, b*b"]
)
def test_names_are_measured_by_square_roots(text):
    dims = symbolic_dims(text)
    names = sorted({n for d in dims for n in d.variables})
    roots = {}
    how = measure_dims(dims, roots)
    assert sorted(how) == names and roots
    for values in itertools.product((1, 2, 3, 7, 40_000), repeat=len(names)):
        sizes = dict(zip(names, values))
        seen = {f"s{i}": d.substitute(sizes) for i, d in enumerate(dims)}
        for name, square in roots.items():
            seen[name] = math.isqrt(square.substitute(seen))
        found = {n: d.substitute(seen) if d.__class__ is Dim else d for n, d in how.items()}
        assert found == sizes
    with pytest.raises(UndecidedDim):
        measure_dims(dims)


def test_random_linear_systems():
    rng, names = random.Random(0), "abcd"
    for _ in range(200):
        rows = [[rng.randint(0, 3) for _ in names] for _ in range(rng.randint(1, 6))]
        terms = [" + ".join(f"{k}*{n}" for k, n in zip(row, names)) for row in rows]
        dims = [d for t in terms for d in symbolic_dims(t) if d.__class__ is Dim]
        if not dims:
            continue
        matrix = np.array([r for r in rows if any(r)], float)
        used = matrix[:, matrix.any(0)]
        try:
            how = measure_dims(dims)
        except UndecidedDim:
            assert np.linalg.matrix_rank(used) < used.shape[1]
            continue
        sizes = {n: rng.randint(1, 30) for n in names}
        seen = {f"s{i}": d.substitute(sizes) for i, d in enumerate(dims)}
        for n, d in how.items():
            assert (d.substitute(seen) if d.__class__ is Dim else d) == sizes[n]


@pytest.mark.parametrize(("text", "name"), [("a + b", "a and b"), ("a*b, a*b*2", "a and b")])
def test_what_sizes_do_not_tell(text, name):
    with pytest.raises(UndecidedDim, match=f"sizes do not determine {name}") as e:
        measure_dims(symbolic_dims(text))
    assert "give an argument with an axis of size a" in e.value.fix


def test_nothing_to_measure():
    assert measure_dims([]) == {}


# ---- among arrays --------------------------------------------------------------------------


def program_of(f, *shapes):
    return plait.make_program(f)(*[plait.ShapeDtypeStruct(symbolic_dims(s), F32) for s in shapes])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, b: x + b,
        lambda x, b: b + x,
        lambda x, b: x / b,
        lambda x, b: 1 - (b - x) * 2,
        lambda x, b: x // b,
        lambda x, b: b // x,
        lambda x, b: x**b,
        lambda x, b: x % (2 * b),
        lambda x, b: el.maximum(b, x),
    ],
)
def test_a_size_in_arithmetic_is_a_weak_number(f):
    program = program_of(lambda x: f(x, x.shape[0]), "b, 3")
    assert [repr(a) for a in program.out_avals] == ["f32[b,3]"]
    half = plait.ShapeDtypeStruct(symbolic_dims("b"), np.float16)
    integer = plait.ShapeDtypeStruct(symbolic_dims("b"), np.int8)
    for t in (half, integer):
        (out,) = plait.make_program(lambda x: x * x.shape[0])(t).out_avals
        assert out.dtype == t.dtype


def test_comparisons_with_arrays_are_arrays():
    program = program_of(
        lambda x: [x < x.shape[0], x.shape[0] < x, x == x.shape[0], x.shape[0] == x,
                   x.shape[0] != x], "b"
    )  # fmt: skip
    assert {repr(a) for a in program.out_avals} == {"bool[b]"}
    (b,) = symbolic_dims("b")
    assert (b == 0) is False and (b == "b") is False and b != None  # noqa: E711


def test_loops_to_a_size():
    program = program_of(lambda x: _control.fori_loop(0, x.shape[0], lambda i, y: y + i, x), "b")
    assert [repr(a) for a in program.out_avals] == ["f32[b]"]
    assert [e.prim.name for e in program.eqns][-1] == "core.scan"
    start = program_of(lambda x: _control.fori_loop(x.shape[0], 9, lambda i, y: y + i, x), "b")
    assert str(start.eqns[-1].params["length"]) == "max(b, 9) - b"


def test_sizes_that_no_argument_has():
    (k,) = symbolic_dims("k")
    f = plait.jit(lambda x: sh.iota(F32, (k,)) + x.sum())
    with pytest.raises(PlaitError, match="the size k is not known: no argument has an axis") as e:
        f.lower(np.ones(3, F32)).as_text()
    assert "(0, k)" in e.value.fix
    with pytest.raises(PlaitError, match="the size k is not known"):
        plait.jit(lambda x: x)(np.ones(3, F32)) + k
