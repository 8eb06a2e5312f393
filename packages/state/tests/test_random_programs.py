"""Random programs of reads and writes in nested branches and loops, against Python and numpy.

A program is a list of statements over three references.  It is run with numpy's arrays, where a
write is a write and a loop is Python's, and with references: at once, under jit, and with
references as arguments.

Invariant: numbers are small integers, so that results are equal and not close.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plait
import plait.numpy as pnp
from plait import lax

SIZES = (3, 2, 0)
"""Of the three references: two vectors and a number."""
MODULUS = 97

names = st.sampled_from(range(3))
numbers = st.integers(-3, 3)
expressions = st.recursive(
    st.one_of(
        st.tuples(st.just("number"), numbers),
        st.tuples(st.just("read"), names, st.integers(0, 5)),
        st.tuples(st.just("turn")),
    ),
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner),
    max_leaves=4,
)


def blocks(statements):
    return st.lists(statements, min_size=1, max_size=3)


writes = st.tuples(st.sampled_from(["set", "add", "whole"]), names, st.integers(0, 5), expressions)
statements = st.recursive(
    writes,
    lambda inner: st.one_of(
        st.tuples(st.just("if"), expressions, blocks(inner), blocks(inner)),
        st.tuples(st.just("for"), st.integers(0, 3), blocks(inner)),
        st.tuples(st.just("scan"), st.integers(0, 3), blocks(inner)),
        st.tuples(st.just("while"), names, st.integers(1, 3), blocks(inner)),
        st.tuples(st.just("jit"), blocks(inner)),
    ),
    max_leaves=8,
)
programs = st.lists(statements, min_size=1, max_size=4)


def starts():
    return [np.arange(1, n + 1, dtype=np.int32) if n else np.int32(5) for n in SIZES]


# ---- with numpy ------------------------------------------------------------------------------


def at_numpy(env, name, i):
    return env[name][i % SIZES[name]] if SIZES[name] else env[name][()]


def value_numpy(e, env, turn):
    if e[0] == "number":
        return e[1]
    if e[0] == "turn":
        return turn
    if e[0] == "read":
        return int(at_numpy(env, e[1], e[2]))
    a, b = (value_numpy(x, env, turn) for x in e[1:])
    return {"+": a + b, "-": a - b, "*": a * b}[e[0]]


def run_numpy(block, env, turn):
    for s in block:
        kind = s[0]
        if kind in ("set", "add", "whole"):
            _, name, i, e = s
            v = value_numpy(e, env, turn)
            place = (i % SIZES[name]) if SIZES[name] and kind != "whole" else ...
            new = env[name][place] + v if kind == "add" else v
            env[name][place] = np.mod(new, MODULUS)
        elif kind == "if":
            run_numpy(s[2] if value_numpy(s[1], env, turn) > 0 else s[3], env, turn)
        elif kind in ("for", "scan"):
            for k in range(s[1]):
                run_numpy(s[2], env, k)
        elif kind == "while":
            left = s[2]
            while left > 0 and at_numpy(env, s[1], 0) < 60:
                run_numpy(s[3], env, left)
                left -= 1
        else:
            run_numpy(s[1], env, turn)


# ---- with references -------------------------------------------------------------------------


def at(env, name, i):
    return env[name][i % SIZES[name]] if SIZES[name] else env[name][...]


def value(e, env, turn):
    if e[0] == "number":
        return pnp.int32(e[1])
    if e[0] == "turn":
        return turn
    if e[0] == "read":
        return at(env, e[1], e[2])
    a, b = (value(x, env, turn) for x in e[1:])
    return {"+": a + b, "-": a - b, "*": a * b}[e[0]]


def write(env, kind, name, i, v):
    if SIZES[name] and kind != "whole":
        i %= SIZES[name]
        env[name][i] = pnp.mod(env[name][i] + v if kind == "add" else v, MODULUS)
    elif kind == "add":
        env[name][...] = pnp.mod(env[name][...] + v, MODULUS)
    else:
        env[name][...] = pnp.broadcast_to(pnp.mod(v, MODULUS), env[name].shape)


def run(block, env, turn):
    for s in block:
        kind = s[0]
        if kind in ("set", "add", "whole"):
            write(env, kind, s[1], s[2], value(s[3], env, turn))
        elif kind == "if":
            lax.cond(
                value(s[1], env, turn) > 0,
                lambda t, s=s: run(s[2], env, t),
                lambda t, s=s: run(s[3], env, t),
                turn,
            )
        elif kind == "for":
            lax.fori_loop(0, s[1], lambda k, _, s=s: run(s[2], env, pnp.int32(k)), None)
        elif kind == "scan":
            lax.scan(
                lambda c, k, s=s: (c, run(s[2], env, k)), None, pnp.arange(s[1], dtype="int32")
            )
        elif kind == "while":

            def turn_of(left, s=s):
                run(s[3], env, left)
                return left - 1

            lax.while_loop(
                lambda left, s=s: (left > 0) & (at(env, s[1], 0) < 60), turn_of, pnp.int32(s[2])
            )
        else:
            plait.jit(lambda t, s=s: run(s[1], env, t))(turn)


# ---- both ------------------------------------------------------------------------------------


def numbers_of(values):
    return [np.asarray(v).tolist() for v in values]


@settings(max_examples=12, deadline=None)
@given(programs)
def test_programs_do_what_python_does(program):
    agrees_with_python(program)


@pytest.mark.wide
@settings(max_examples=40, deadline=None)
@given(programs)
def test_many_programs_do(program):
    agrees_with_python(program)


def agrees_with_python(program):
    """Eagerly, under jit that closes over references or is given them, and with its own."""
    want = [np.array(x) for x in starts()]
    run_numpy(program, want, 1)

    refs = [plait.new_ref(x) for x in starts()]
    run(program, refs, pnp.int32(1))
    assert numbers_of(r[...] for r in refs) == numbers_of(want)

    refs = [plait.new_ref(x) for x in starts()]
    plait.jit(lambda: run(program, refs, pnp.int32(1)))()
    assert numbers_of(r[...] for r in refs) == numbers_of(want)

    refs = [plait.new_ref(x) for x in starts()]
    plait.jit(lambda given: run(program, given, pnp.int32(1)))(refs)
    assert numbers_of(r[...] for r in refs) == numbers_of(want)

    def local():
        made = [plait.new_ref(x) for x in starts()]
        run(program, made, pnp.int32(1))
        return [plait.freeze(r) for r in made]

    assert numbers_of(plait.jit(local)()) == numbers_of(want)


@pytest.mark.parametrize("again", [1, 2])
def test_a_program_that_has_all_statements(again):
    program = [
        ("for", 3, [("if", ("-", ("turn",), ("number", 1)),
                     [("add", 0, 1, ("*", ("turn",), ("read", 1, 0)))],
                     [("set", 1, 0, ("+", ("read", 2, 0), ("turn",)))])]),
        ("while", 2, 3, [("add", 2, 0, ("turn",)), ("scan", 2, [("add", 0, 0, ("turn",))])]),
        ("jit", [("whole", 1, 0, ("read", 0, 2))]),
    ] * again  # fmt: skip
    want = [np.array(x) for x in starts()]
    run_numpy(program, want, 1)
    refs = [plait.new_ref(x) for x in starts()]
    plait.jit(lambda: run(program, refs, pnp.int32(1)))()
    assert numbers_of(r[...] for r in refs) == numbers_of(want)
    assert numbers_of(want) != numbers_of(starts())
