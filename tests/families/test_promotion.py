"""Promotion of every pair of dtypes, against a lattice written out here.

Invariant: the lattice is a list of edges, and a meeting point the least of what can be reached from
both; pairs for which jax.numpy (0.10.2, 64 bits on) has an answer have that answer.
"""

import itertools

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.ext.errors import TypeRule

EDGES = """
bool > i*
i* > u4 i4
u4 > u8 i8
u8 > u16 i16
u16 > u32 i32
u32 > u64 i64
u64 > f*
i4 > i8
i8 > i16
i16 > i32
i32 > i64
i64 > f*
f* > bf16 f16 c*
bf16 > f32
f16 > f32
f32 > f64 c64
c* > c64
f64 > c128
c64 > c128
"""
NAMES = {
    "bool": "bool", "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128", "i*": int, "f*": float, "c*": complex,
}  # fmt: skip
SHOWN = {"u4": "uint4", "i4": "int4"}


def reachable():
    """Everything above each dtype: a fixpoint of the edges."""
    up = {n: {n} for n in NAMES}
    for line in EDGES.strip().splitlines():
        low, _, high = line.partition(" > ")
        up[low] |= set(high.split())
    while True:
        new = {n: set().union(*(up[m] for m in up[n])) for n in NAMES}
        if new == up:
            return up
        up = new


ABOVE = reachable()


def least(a, b):
    """The one dtype above both that is below all others above both."""
    both = ABOVE[a] & ABOVE[b]
    (only,) = [n for n in both if both <= ABOVE[n]]
    return only


def cells(table):
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in table.splitlines()]
    return {(r[0].strip("*| ").replace("*", "") + ("*" if "***" in r[0] else ""), h): c
            for r in rows[2:] for h, c in zip(rows[0][1:], r[1:])}  # fmt: skip


@pytest.mark.parametrize("default", ["32", "64"])
def test_every_pair(default):
    with plait.config(default_float=f"float{default}", default_int=f"int{default}"):
        found = cells(plait.dtypes.promotion_table(*NAMES.values()))
    heads = [SHOWN.get(n, n) for n in NAMES]
    for (a, sa), (b, sb) in itertools.product(zip(NAMES, heads), repeat=2):
        want = least(a, b)
        if "u64" in (a, b) and {a, b} & {"i4", "i8", "i16", "i32", "i64"}:
            want = "f64"  # jax says f*, which is f64 there; here the default may be float32
        assert found[sa, sb] == SHOWN.get(want, want), (a, b)


def test_arrays_promote_as_the_table_says():
    one = {n: pnp.ones((), t) if isinstance(t, str) else t(1) for n, t in NAMES.items()}
    some = ["bool", "u8", "i32", "bf16", "f32", "c64", "i*", "f*"]
    for a, b in itertools.product(some, repeat=2):
        want = least(a, b)
        if a[-1] == b[-1] == "*":
            continue
        dtype = np.dtype({"i*": "int32", "f*": "float32"}.get(want) or pnp.dtype(NAMES[want]))
        assert pnp.add(one[a], one[b]).dtype == dtype, (a, b)
        assert pnp.result_type(one[a], one[b]) == dtype
        assert pnp.where(True, one[a], one[b]).dtype == dtype


def test_narrow_floats_meet_wider_ones_only():
    table = cells(plait.dtypes.promotion_table("float8_e5m2", "float8_e4m3fn", "float16", "int8"))
    assert table["float8_e5m2", "float8_e4m3fn"] == "-"
    assert table["float8_e5m2", "f16"] == "f16" and table["i8", "float8_e5m2"] == "float8_e5m2"
    with pytest.raises(TypeRule, match="no dtype holds both"):
        pnp.promote_types("float8_e5m2", "float8_e4m3fn")


# ---- strict ------------------------------------------------------------------------------------

F32, F64, I32 = pnp.ones(2), pnp.ones(2, "float64"), pnp.arange(2)
MIXED = {
    "dtypes": lambda: F32 + F64, "kinds": lambda: I32 * F32, "a float": lambda: I32 + 1.5,
    "a boolean": lambda: (F32 > 0) + 1, "concatenate": lambda: pnp.concatenate([F32, I32]),
    "where": lambda: pnp.where(True, F32, I32), "numpy": lambda: F32 - np.ones(2),
    "jit": lambda: plait.jit(lambda a, b: a * b)(I32, F32), "widths": lambda: pnp.result_type(
        "int8", "int32"),
}  # fmt: skip
PLAIN = [
    lambda: F32 + F32 * 2 - 1.5, lambda: I32 + 1, lambda: F32.astype("complex64") * 1.5 + 1,
    lambda: F32.mean() + pnp.var(F32), lambda: plait.nn.softmax(F32), lambda: pnp.median(F32),
    lambda: plait.random.normal(plait.random.key(0), (2,)) * F32, lambda: pnp.power(F32, 2.5),
    lambda: plait.grad(lambda x: pnp.sin(x).sum())(F32), lambda: I32[::-1][1] + 1 + True * 1,
]  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_strict_promotes_nothing_but_numbers(name):
    MIXED[name]()
    with plait.config(numpy_dtype_promotion="strict"):
        with pytest.raises(TypeRule, match="numpy_dtype_promotion is 'strict'") as e:
            MIXED[name]()
        assert ".astype" in str(e.value) and "test_promotion.py" in str(e.value)
    MIXED[name]()


def test_strict_leaves_the_rest_alone():
    with plait.config(numpy_dtype_promotion="strict"):
        strict = [np.asarray(f()) for f in PLAIN]
        assert "| **i32** | i32 | - |" in plait.dtypes.promotion_table("int32", "float32")
    for f, x in zip(PLAIN, strict):
        np.testing.assert_array_equal(np.asarray(f()), x)
