"""Texts that strangers wrote or that were damaged: programs, sizes and constraints.

Invariant: whatever the text is, its reader returns a value that prints again, or raises an error of
Plait's in three parts, within seconds.
"""

import random
import re

import numpy as np
import pytest

import plait
from plait.ext.errors import PlaitError
from plait.ext.sizes import Scope, symbolic_dims
from plait.text import parse, show

X = np.zeros((2, 3), np.float32)


def programs():
    """Return texts with constants, keys, loops, branches and symbolic sizes."""
    functions = [
        lambda x: plait.lax.sin(x) * 2 + x,
        lambda x: plait.lax.scan(lambda c, r: (c + r[0], c), 0.0, x),
        lambda x: plait.lax.cond(x[0, 0] > 0, lambda: x, lambda: -x),
        lambda x: plait.lax.sort(x, dimension=0) @ np.arange(6, dtype=np.float32).reshape(3, 2),
        lambda x: x + plait.lax.axis_index("a") if x.ndim > 2 else plait.lax.rev(x, (0,)),
    ]
    sizes = plait.ShapeDtypeStruct((*symbolic_dims("b", Scope(["b >= 2"])), 3), np.float32)
    traced = [plait.jit(f).trace(X).program for f in functions]
    return [*map(show, [*traced, plait.jit(lambda x: x * x.shape[0]).trace(sizes).program])]


PIECES = (
    "%0 %1 %x f32[] f32[2,3] i32[99999999999] f31[2] f32[b] key<fry>[] @0 @9 @" + "9" * 5000,
    "= ( ) { } [ ] < > , : ; \" ' \\ \\x \\U99999999 b'é' \0 \ud800 # \n ... * - + / %",
    "return const set none true nan inf -inf 1e999 1j 0 1 -1 1234567890123456789012 u8 300:u8",
    "given least 9; b>=2 axis dims core.sin core.scan sin does and ordered io mod(b,0) 2**2**9",
)
WORDS = [word for line in PIECES for word in line.split(" ")]


def damaged(text: str, rng: random.Random, pieces: list[str]) -> str:
    """Insert, remove, replace or repeat up to three pieces of a text."""
    parts = re.findall(r"\w+|\s+|.", text, re.S)
    for _ in range(rng.randint(1, 3)):
        at, how = rng.randint(0, len(parts)), rng.random()
        if how < 0.7:
            parts[at : at + (how > 0.3)] = [rng.choice(pieces)]
        elif how < 0.9:
            parts[at : at + 1] = []
        else:
            parts[at:at] = parts[max(0, at - rng.randint(1, 30)) : at]
    return "".join(parts)


def outcome(read, text):
    """Return what a reader returns, or None after an error in three parts."""
    try:
        return read(text)
    except PlaitError as e:
        assert e.fix and "test_hostile_texts.py" in str(e), (text, e)
        return None


@pytest.mark.parametrize("seed", range(6))
def test_damaged_programs(seed):
    rng, text, whole = random.Random(seed), programs()[seed], 0
    for _ in range(250):
        found = outcome(parse, damaged(text, rng, WORDS))
        whole += found is not None and isinstance(show(found), str)
    assert whole < 250  # most are refused


SIZES = ["b, 2*b + 1, 3", "(b, c)", "mod(b, 8), max(b, c), floordiv(b*c, 2)", "b*c - 1", "4, b"]
FACTS = ["b >= 2", "mod(b, 8) == 0", "max(b, c) >= 2*b - 3", "b + c <= 7", "b == 2*c"]
PARTS = (
    "b c _b é _ ... 1 0 2 -1 99999999999999999999 3.5 + - * / // ** , ( ) [ ] = ; \t \0 ² ٣ None "
    "mod( floordiv( max( min( == >= <= < > != lambda \ud800 " + "1" * 5000 + " " + "(" * 5000
).split(" ")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_sizes(seed):
    rng = random.Random(seed)
    for _ in range(400):
        found = outcome(symbolic_dims, damaged(rng.choice(SIZES), rng, PARTS))
        assert found is None or isinstance(repr(found), str)
        found = outcome(lambda t: Scope([t]), damaged(rng.choice(FACTS), rng, PARTS))
        assert found is None or isinstance(repr(found), str)


LONG = {
    "a product of sums": "*".join([f"(a{i} + b{i})" for i in range(16)]),
    "a power of powers": "((((b + c)**16)**16)**16)**16",
    "a power of a long sum": "(a + b + c + d + e + f + g)**16",
    "a product of one name": "*".join(["b"] * 3000),
    "a product of numbers": "*".join(["9" * 80] * 100),
    "a maximum of many sizes": f"max({','.join([f'v{i}' for i in range(150)])})",
    "maxima of maxima": f"max({','.join([f'max(u{i}, v{i}, w{i})' for i in range(60)])})",
    "a number of many digits": "9" * 5000,
    "parentheses in parentheses": "(" * 5000 + "b" + ")" * 5000,
    "signs of signs": "-" * 5000 + "b",
    "functions of functions": "mod(" * 5000 + "b" + ", 3)" * 5000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_sizes(name):
    """Refuse sizes whose comparisons would take minutes."""
    for read, text in ((symbolic_dims, LONG[name]), (lambda t: Scope([t]), f"{LONG[name]} >= 2")):
        with pytest.raises(PlaitError, match="cannot read sizes: expected") as e:
            read(text)
        assert e.value.fix and "test_hostile_texts.py" in str(e.value)


TEXTS = {
    "an escape that Python refuses": r"'\x'(%0: f32[3]) { return %0 }",
    "an escape of no character": r"'\U99999999'(%0: f32[3]) { return %0 }",
    "an escape that means itself": r"'\d'(%0: f32[3]) { return %0 }",
    "bytes that are not ASCII": "f(%0: f32[3]) { %1: f32[3] = core.neg(%0; a=b'é') return %1 }",
    "thousands of digits": "f() { return " + "1" * 5000 + ":f32[] }",
    "a constant of thousands of digits": "f() { const %0: f32[] = @" + "1" * 5000 + " return %0 }",
    "values in values": "f() { %0: f32[] = core.neg(1:f32[]; a=" + "(" * 5000 + ") return %0 }",
    "programs in programs": "f() { %0: f32[] = core.neg(1:f32[]; a=" * 3000,
    "sizes in sizes": "f(%0: f32[" + "(" * 5000 + "b]) { return %0 }",
    "a dtype's scalar": "f() { %0: f32[] = core.neg(1:f32[]; a=300:u8) return %0 }",
    "a fraction for an integer": "f() { return 0.5:i32[] }",
    "nan for an integer": "f() { return nan:i32[] }",
    "an integer out of range": "f() { return 300:u8[] }",
    "a negative unsigned integer": "f() { return -1:u32[] }",
    "a complex number for a real one": "f() { return 1.0+2.0j:f32[] }",
    "a number for a boolean": "f() { return 2:bool[] }",
    "nan in integers": "f() { const %0: i32[2] = [1, nan] return %0 }",
    "integers out of range": "f() { const %0: u8[2] = [300, -1] return %0 }",
    "complex numbers in real ones": "f() { const %0: f32[1] = [1.0+1.0j] return %0 }",
    "numbers in booleans": "f() { const %0: bool[1] = [2] return %0 }",
}


@pytest.mark.parametrize("name", TEXTS)
def test_refused_texts(name):
    with pytest.raises(PlaitError, match="line 1, column") as e:
        parse(TEXTS[name])
    assert e.value.fix and "test_hostile_texts.py" in str(e.value)
