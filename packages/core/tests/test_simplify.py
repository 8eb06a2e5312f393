"""Simplification: smaller programs that compute the same bits, by numpy's account."""

import math
import struct

import numpy as np
import pytest

import plait
from plait._core.array import Literal, asarray
from plait._core.check import check
from plait._core.ir import Effect, Program, effects_of, programs_in
from plait._core.primitive import Primitive
from plait._core.staging import staged
from plait._core.structures import structure
from plait._ops import callbacks, collective, control_flow, mapping, reduction, shape
from plait._ops import elementwise as el
from plait._plugins.traits import Structural
from plait._simplify import dce, inline_calls, simplify, simplify_rules
from plait._types.avals import Aval
from plait._types.dims import symbolic_dims
from plait.testing import numpy_evaluate, random_arguments, random_program
from plait.text import parse, same_program, show

CELL = Aval((), np.float32)
ROW = Aval((3,), np.float32)
BOX = Aval((2, 3), np.float32)
I3 = Aval((3,), np.int32)
B3 = Aval((3,), np.bool_)
C3 = Aval((3,), np.complex64)


def program(f, *avals, name="f"):
    return staged(f, avals, name)


def bits(x):
    """Every bit, all nans being one."""
    x = np.asarray(x)
    if x.dtype.kind in "fc":
        x = np.where(x == x, x, np.nan).astype(x.dtype)
    return x.dtype, x.shape, x.tobytes()


def same_bits(p, q, args):
    for a, b in zip(numpy_evaluate(p, args), numpy_evaluate(q, args), strict=True):
        assert bits(a) == bits(b), f"{a} became {b} from\n{show(p)}\nto\n{show(q)}"


def body(p):
    """The equations as text."""
    return [line.strip() for line in show(p).split("\n")[1:-2]]


# ---- random programs -------------------------------------------------------------------------


def acts_of(p):
    """Effects in program order, sub-programs in place."""
    found = []
    for e in p.eqns:
        inner = programs_in(e.params)
        for q in inner:
            found += acts_of(q)
        if not inner:
            found += effects_of(e.prim, e.params)
    return found


@pytest.mark.sampled(10)
@pytest.mark.parametrize("start", range(0, 800, 100))
def test_random_programs_keep_every_bit(start):
    shorter = 0
    for seed in range(start, start + 100):
        p = random_program(seed)
        q = check(simplify(p))
        assert (q.name, q.inputs, q.out_avals) == (p.name, p.inputs, p.out_avals)
        assert simplify(q) is q and simplify(p) is q
        args = random_arguments(p, seed)
        same_bits(p, q, args)
        shorter += len(q.eqns) < len(p.eqns)
    assert shorter > 50


@pytest.mark.sampled(8)
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_dce_of_random_programs(start):
    rng = np.random.default_rng(start)
    for seed in range(start, start + 100):
        p = random_program(seed)
        args = random_arguments(p, seed)
        keep = [bool(k) for k in rng.integers(0, 2, len(p.outputs))]
        q, used = dce(p, keep)
        check(q)
        assert len(used) == len(p.inputs) and len(q.inputs) == sum(used)
        want = [x for x, k in zip(numpy_evaluate(p, args), keep) if k]
        got = numpy_evaluate(q, [a for a, u in zip(args, used) if u])
        assert [*map(bits, got)] == [*map(bits, want)]
        assert dce(q)[0] is q


@pytest.mark.sampled(8)
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_inlining_random_programs(start):
    def calls(p):
        inner = [q for e in p.eqns for q in programs_in(e.params)]
        return sum(e.prim is control_flow.call for e in p.eqns) + sum(map(calls, inner))

    for seed in range(start, start + 100):
        p = random_program(seed)
        q = check(inline_calls(p))
        assert calls(q) == 0
        assert (q.in_avals, q.out_avals) == (p.in_avals, p.out_avals)
        same_bits(p, q, random_arguments(p, seed))


def test_compiled_results_agree_too():
    for seed in range(6):
        p = random_program(seed, size=12)
        args = random_arguments(p, seed)
        run = plait.jit(lambda *xs: control_flow.call.bind(*xs, program=simplify(p)))  # noqa: B023
        for a, b in zip(run(*args), numpy_evaluate(p, args), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, 1e-5, 1e-5)


# ---- identities ------------------------------------------------------------------------------


def one(prim, *literals, aval=ROW, **params):
    """prim(x, *literals), where `...` among the literals is x."""

    def f(x):
        atoms = [x if v is ... else Literal(v, aval) for v in literals or (...,)]
        return [prim.bind(*atoms, **params)]

    return program(f, aval)


@pytest.mark.parametrize(
    "p",
    [
        one(el.mul, ..., 1.0), one(el.mul, 1, ...), one(el.div, ..., 1.0), one(el.div, ..., 1),
        one(el.add, ..., -0.0), one(el.add, -0.0, ...), one(el.sub, ..., 0.0),
        one(el.sub, ..., 0), one(el.integer_pow, exponent=1),
        one(el.maximum, ..., ...), one(el.minimum, ..., ...),
        one(el.add, ..., 0, aval=I3), one(el.sub, ..., 0, aval=I3), one(el.mul, 1, ..., aval=I3),
        one(el.div, ..., 1, aval=I3), one(el.and_, ..., -1, aval=I3), one(el.or_, 0, ..., aval=I3),
        one(el.xor, ..., 0, aval=I3), one(el.and_, ..., ..., aval=I3),
        one(el.shift_left, ..., 0, aval=I3), one(el.shift_right_arithmetic, ..., 0, aval=I3),
        one(el.and_, True, ..., aval=B3), one(el.or_, ..., False, aval=B3),
        one(el.mul, ..., True, aval=B3), one(el.add, ..., False, aval=B3),
        one(el.and_, ..., 255, aval=Aval((3,), np.uint8)),
        one(shape.transpose_, aval=BOX, perm=(0, 1)), one(shape.reshape_, aval=BOX, shape=(2, 3)),
        one(shape.broadcast_in_dim, aval=BOX, shape=(2, 3), dims=(0, 1)),
        one(shape.rev, axes=()), one(shape.squeeze_, axes=()),
        one(shape.slice_, aval=BOX, starts=(0, 0), limits=(2, 3), strides=(1, 1)),
        one(shape.convert_, dtype=np.dtype(np.float32), weak=False),
        one(shape.concatenate_, axis=0),
    ],
    ids=lambda p: body(p)[0],
)  # fmt: skip
def test_what_is_no_operation(p):
    q = simplify(p)
    assert not q.eqns and q.outputs == p.inputs, show(q)
    assert q.out_avals == p.out_avals


@pytest.mark.parametrize(
    "p",
    [
        one(el.add, ..., 0.0), one(el.add, ..., 0), one(el.add, 0.0, ...), one(el.sub, ..., -0.0),
        one(el.sub, 0.0, ...), one(el.mul, ..., 0.0), one(el.mul, ..., -1.0),
        one(el.div, 1.0, ...), one(el.sub, ..., ...), one(el.div, ..., ...),
        one(el.div, ..., 1, aval=C3), one(el.mul, ..., 1, aval=C3), one(el.add, ..., 0, aval=C3),
        one(el.stop), one(el.integer_pow, exponent=-1), one(el.sub, 0, ..., aval=I3),
        one(el.and_, ..., 1, aval=I3), one(el.xor, ..., -1, aval=I3),
        one(el.and_, ..., 127, aval=Aval((3,), np.int8)), one(el.shift_left, 0, ..., aval=I3),
        one(shape.transpose_, aval=Aval((3, 3), np.float32), perm=(1, 0)),
        one(shape.broadcast_in_dim, aval=Aval((3, 3), np.float32), shape=(3, 3), dims=(1, 0)),
        one(shape.rev, axes=(0,)), one(shape.convert_, dtype=np.dtype(np.float32), weak=True),
        one(shape.slice_, starts=(0,), limits=(3,), strides=(2,)),
        one(reduction.reduce_max, axes=()),
    ],
    ids=lambda p: body(p)[0],
)  # fmt: skip
def test_what_only_looks_like_it(p):
    assert simplify(p) is p


def test_why_they_only_look_like_it():
    """The values for which the identities above would be wrong, by numpy."""
    zero, inf = np.float32([-0.0]), np.float32([np.inf])
    assert np.signbit(zero) and not np.signbit(zero + np.float32(0))
    assert not np.signbit(zero - np.float32(-0.0)) and not np.signbit(np.float32(0) - -zero)
    with np.errstate(invalid="ignore"):
        assert np.isnan(inf * 0) and np.isnan(inf - inf) and np.isnan(inf / inf)
        assert np.isnan((inf.astype(np.complex64) * np.complex64(1)).imag)
    assert np.signbit(zero + np.float32(-0.0)) and np.signbit(zero - np.float32(0))


def test_results_that_are_literals():
    def value(p, aval=None):
        q = simplify(p)
        assert not q.eqns, show(q)
        assert q.out_avals == p.out_avals
        same_bits(p, q, random_arguments(p))
        return q.outputs[0].value

    assert value(one(el.mul, ..., 0, aval=I3)) == 0
    assert value(one(el.mul, False, ..., aval=B3)) is False
    assert value(one(el.and_, ..., 0, aval=I3)) == 0
    assert value(one(el.and_, ..., False, aval=B3)) is False
    assert value(one(el.or_, ..., True, aval=B3)) is True
    assert value(one(el.or_, ..., -1, aval=I3)) == -1
    assert value(one(el.or_, ..., 255, aval=Aval((3,), np.uint8))) == 255
    assert value(one(el.xor, ..., ..., aval=I3)) == 0
    assert value(one(el.xor, ..., ..., aval=B3)) is False
    assert value(one(el.sub, ..., ..., aval=I3)) == 0
    assert value(one(el.integer_pow, exponent=0)) == 1
    assert value(one(el.stop, 2.5)) == 2.5


def test_selection():
    def f(p, x, y):
        yes, no = (Literal(v, B3) for v in (True, False))
        zeros = [Literal(v, ROW) for v in (0.0, 0.0, -0.0)]
        return [
            el.select.bind(p, x, x), el.select.bind(yes, x, y), el.select.bind(no, x, y),
            el.select.bind(p, zeros[0], zeros[1]), el.select.bind(p, zeros[0], zeros[2]),
            el.select.bind(p, x, y),
        ]  # fmt: skip

    p = program(f, B3, ROW, ROW)
    q = simplify(p)
    x, y = p.inputs[1:]
    assert q.outputs[:3] == [x, x, y] and q.outputs[3].value == 0.0
    assert len(q.eqns) == 2
    args = [np.array([True, False, True]), *np.float32([[1, 2, 3], [4, 5, 6]])]
    same_bits(p, q, args)


@pytest.mark.parametrize("prim", [el.neg, el.not_, el.conj])
def test_operations_that_undo_themselves(prim):
    aval = {el.neg: ROW, el.not_: I3, el.conj: C3}[prim]

    def f(x):
        y = prim.bind(x)
        return [prim.bind(y), prim.bind(prim.bind(prim.bind(y)))]

    p = program(f, aval)
    q = simplify(p)
    assert not q.eqns and q.outputs == p.inputs * 2


def test_chains_of_moves_become_one():
    cube = Aval((2, 3, 4), np.float32)

    def f(x):
        y = shape.transpose_.bind(shape.transpose_.bind(x, perm=(1, 2, 0)), perm=(1, 0, 2))
        z = shape.transpose_.bind(shape.transpose_.bind(x, perm=(1, 2, 0)), perm=(2, 0, 1))
        r = shape.rev.bind(shape.rev.bind(x, axes=(0, 1)), axes=(1, 2))
        s = shape.reshape_.bind(shape.reshape_.bind(x, shape=(6, 4)), shape=(4, 6))
        t = shape.reshape_.bind(shape.reshape_.bind(x, shape=(24,)), shape=(2, 3, 4))
        b = shape.broadcast_in_dim.bind(x, shape=(2, 3, 5, 4), dims=(0, 1, 3))
        c = shape.broadcast_in_dim.bind(b, shape=(3, 2, 7, 5, 4), dims=(1, 0, 3, 4))
        return [y, z, r, s, t, c]

    p = program(f, cube)
    q = simplify(p)
    assert body(q) == [
        "%1: f32[4,3,2] = core.transpose(%0; perm=(2, 1, 0))",
        "%2: f32[2,3,4] = core.rev(%0; axes=(0, 2))",
        "%3: f32[4,6] = core.reshape(%0; shape=(4, 6))",
        "%4: f32[3,2,7,5,4] = core.broadcast_in_dim(%0; shape=(3, 2, 7, 5, 4), dims=(1, 0, 4))",
    ]
    assert q.outputs[1] is q.outputs[4] is p.inputs[0]
    same_bits(p, q, [np.arange(24, dtype=np.float32).reshape(2, 3, 4)])


def test_literals_move_freely_and_keep_their_scalar():
    def f(x):
        lit = Literal(-0.0, ROW)
        same = [Literal(2.5, Aval((n, 3), np.float32)) for n in (1, 2)]
        return [
            shape.broadcast_in_dim.bind(lit, shape=(2, 3), dims=(1,)),
            shape.reshape_.bind(lit, shape=(1, 3)),
            shape.rev.bind(lit, axes=(0,)),
            shape.slice_.bind(lit, starts=(1,), limits=(3,), strides=(1,)),
            shape.concatenate_.bind(*same, axis=0),
            shape.concatenate_.bind(same[0], Literal(0.0, BOX), axis=0),
            shape.pad_.bind(same[1], Literal(2.5, CELL), low=(1, 0), high=(0, 0), interior=(0, 0)),
            shape.pad_.bind(same[1], Literal(1.0, CELL), low=(1, 0), high=(0, 0), interior=(0, 0)),
            shape.pad_.bind(x, Literal(1.0, CELL), low=(0, 0), high=(0, 0), interior=(0, 0)),
        ]

    p = program(f, BOX)
    q = simplify(p)
    assert [e.prim.name for e in q.eqns] == ["core.concatenate", "core.pad"]
    assert [repr(o) for o in q.outputs[:5]] == [
        "-0.0:f32[2,3]", "-0.0:f32[1,3]", "-0.0:f32[3]", "-0.0:f32[2]", "2.5:f32[3,3]",
    ]  # fmt: skip
    same_bits(p, q, [np.zeros((2, 3), np.float32)])


F16, F32, F64, BF16 = map(plait.dtypes.dtype, ("float16", "float32", "float64", "bfloat16"))
I8, I32, I64, U8, U32 = map(np.dtype, (np.int8, np.int32, np.int64, np.uint8, np.uint32))


@pytest.mark.parametrize(
    ("start", "middle", "is_identity"),
    [
        (F32, F64, True), (F64, F32, False), (F16, F32, True), (BF16, F32, True),
        (BF16, F16, False), (F16, BF16, False), (I8, I32, True), (U8, I32, True), (I32, I8, False),
        (I32, U32, False), (U32, I64, True), (np.dtype(bool), I8, True), (I32, F64, False),
        (np.dtype(bool), F32, True), (F32, np.dtype(np.complex64), False),
        (np.dtype(np.complex64), np.dtype(np.complex128), True), (F32, np.dtype(bool), False),
    ],
    ids=str,
)  # fmt: skip
def test_conversion_transfer(start, middle, is_identity):
    def f(x):
        y = shape.convert_.bind(x, dtype=middle, weak=False)
        return [shape.convert_.bind(y, dtype=start, weak=False)]

    p = program(f, Aval((3,), start))
    q = simplify(p)
    assert (not q.eqns) is is_identity
    if is_identity:
        values = np.array([0, 1, 1]).astype(start)
        same_bits(p, q, [values])


@pytest.mark.parametrize(
    ("value", "start", "end"),
    [(0.1, "float32", "float64"), (1e300, "float64", "float32"), (-0.0, "float32", "float64"),
     (300, "int32", "uint8"), (-1, "int32", "uint32"), (True, "bool", "float32"),
     (2, "int32", "float32"), (2**31 - 1, "int32", "float32"), (0.5, "float32", "bool"),
     (math.nan, "float32", "bool"), (0, "float32", "float64")],
    ids=str,
)  # fmt: skip
def test_converted_literals(value, start, end):
    """Against numpy's conversion of an array of the first dtype."""
    p = program(
        lambda: [shape.convert_.bind(Literal(value, Aval((2,), start)), dtype=np.dtype(end),
                                     weak=False)]
    )  # fmt: skip
    q = simplify(p)
    assert not q.eqns
    with np.errstate(all="ignore"):
        want = np.full(2, value, start).astype(end)
    assert bits(q.outputs[0].numpy()) == bits(want)


def test_floats_are_not_made_integers_here():
    p = program(
        lambda: [shape.convert_.bind(Literal(1e20, ROW), dtype=np.dtype(np.int32), weak=False)]
    )
    assert simplify(p) is p


def test_symbolic_sizes():
    (b,) = symbolic_dims("b")
    aval = Aval((b, 3), np.float32)

    def f(x):
        y = shape.slice_.bind(x, starts=(0, 0), limits=(b, 3), strides=(1, 1))
        z = shape.reshape_.bind(shape.reshape_.bind(y, shape=(3 * b,)), shape=(b, 3))
        w = shape.slice_.bind(x, starts=(0, 0), limits=(b // 2, 3), strides=(1, 1))
        zero = Literal(0.0, CELL)
        return [shape.pad_.bind(z, zero, low=(0, 0), high=(0, 0), interior=(0, 0)), w]

    p = program(f, aval)
    q = simplify(p)
    assert q.outputs[0] is p.inputs[0]
    assert [e.prim for e in q.eqns] == [shape.slice_]


# ---- common subexpressions -------------------------------------------------------------------


def test_repetitions_are_found_through_one_another():
    def f(x, y):
        a = el.mul.bind(el.sin.bind(x), el.add.bind(x, y))
        b = el.mul.bind(el.sin.bind(x), el.add.bind(x, y))
        return [el.add.bind(a, b), el.add.bind(y, x)]

    q = simplify(program(f, ROW, ROW))
    assert body(q) == [
        "%2: f32[3] = core.sin(%0)", "%3: f32[3] = core.add(%0, %1)",
        "%4: f32[3] = core.mul(%2, %3)", "%5: f32[3] = core.add(%4, %4)",
        "%6: f32[3] = core.add(%1, %0)",
    ]  # fmt: skip


def count(f, *avals):
    return len(simplify(program(f, *avals)).eqns)


def test_what_python_takes_for_equal_is_not():
    loose = Primitive("testing.loose", lambda x, *, k=0: x)
    pairs = [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (True,)), ("a", b"a")]
    for a, b in pairs:
        assert count(lambda x, a=a, b=b: [loose.bind(x, k=a), loose.bind(x, k=b)], ROW) == 2
        assert count(lambda x, a=a: [loose.bind(x, k=a), loose.bind(x, k=a)], ROW) == 1
    aval = Aval((3,), np.complex64)
    for a, b in [(0.0, -0.0), (1, 2), (complex(0, -0.0), 0j), (complex(1, -0.0), complex(1, 0))]:
        f = lambda x, a=a, b=b: [el.div.bind(Literal(v, aval), x) for v in (a, b)]  # noqa: E731
        assert count(f, aval) == 2
    twice = lambda x: [el.div.bind(Literal(math.nan, ROW), x) for _ in range(2)]  # noqa: E731
    assert count(twice, ROW) == 1


def test_literals_of_other_types_are_other_literals():
    def f(x):
        cells = [Literal(1.0, Aval((n,), np.float32)) for n in (2, 3)]
        return [el.sin.bind(c) for c in cells]

    assert count(f, ROW) == 2


def test_sub_programs_are_compared_by_identity():
    p, q = (program(lambda x: [el.sin.bind(x)], ROW) for _ in range(2))
    call = lambda x, *ps: [control_flow.call.bind(x, program=p)[0] for p in ps]  # noqa: E731
    assert count(lambda x: call(x, p, p), ROW) == 1
    assert count(lambda x: call(x, p, q), ROW) == 2


def test_barriers_stay_apart():
    assert count(lambda x: [*shape.barrier.bind(x), *shape.barrier.bind(x)], ROW) == 2


def test_collectives_are_pure():
    f = lambda x: [collective.psum_.bind(x, axes=("i",)) for _ in range(2)]  # noqa: E731
    assert count(f, ROW) == 1


# ---- effects ---------------------------------------------------------------------------------

acts = Primitive(
    "testing.does", lambda *xs, name: [], many=True,
    effect=lambda p: Effect(p["name"], True) if p["name"] else None,
)  # fmt: skip


def test_effects_are_neither_dropped_nor_merged_nor_moved():
    inner = program(lambda x: acts.bind(x, name="b") + [el.mul.bind(x, Literal(1.0, ROW))], ROW)

    def f(x):
        el.sin.bind(x)
        acts.bind(el.mul.bind(x, Literal(1.0, ROW)), name="a")
        control_flow.call.bind(x, program=inner)
        acts.bind(el.mul.bind(x, Literal(1.0, ROW)), name="a")
        control_flow.call.bind(x, program=inner)
        acts.bind(x, name="")
        return [x]

    p = program(f, ROW)
    q = simplify(p)
    assert [e.name for e in acts_of(q)] == [e.name for e in acts_of(p)] == ["a", "b", "a", "b"]
    assert q.effects == p.effects
    assert all(e.inputs == p.inputs for e in q.eqns)
    assert len(q.eqns) == 4
    first, second = (programs_in(e.params)[0] for e in q.eqns if e.prim is control_flow.call)
    assert first is second and not first.outputs and len(first.eqns) == 1


def test_pure_callbacks_may_be_merged_and_dropped():
    def f(x):
        call = lambda: callbacks.pure_callback(np.sin, x, x)  # noqa: E731
        call()
        return call()

    p = plait.make_program(f)(np.float32([1, 2]))
    assert len(simplify(p).eqns) == 1


def test_loops_that_act_stay():
    step = program(lambda c, x: [c, *acts.bind(c, name="a"), x], ROW, CELL, name="step")
    p = program(
        lambda x: control_flow.scan.bind(
            x, x, body=step, consts=0, carry=1, length=3, reverse=False, unroll=1
        )[:0],
        ROW,
    )
    q = simplify(p)
    (e,) = q.eqns
    assert e.outputs == [e.outputs[0]] and e.params["carry"] == 1
    assert len(e.inputs) == 1, "the rows are not needed"
    assert q.effects == p.effects


# ---- dead code through programs --------------------------------------------------------------


def test_unused_operands_and_results_of_calls():
    inner = program(
        lambda x, y, z: [el.sin.bind(x), el.cos.bind(y), el.add.bind(z, z)], ROW, ROW, ROW, name="g"
    )
    p = program(lambda x, y, z: [control_flow.call.bind(x, y, z, program=inner)[1]], ROW, ROW, ROW)
    q = simplify(p)
    assert show(q) == (
        "f(%0: f32[3], %1: f32[3], %2: f32[3]) {\n"
        "  %3: f32[3] = core.call(%1; program=g(%0: f32[3]) {\n"
        "    %1: f32[3] = core.cos(%0)\n"
        "    return %1\n"
        "  })\n"
        "  return %3\n"
        "}"
    )  # fmt: skip


def test_what_a_loop_carries_for_nothing():
    """c0 feeds c1, c1 feeds the result; c2 feeds only itself and a row nobody reads."""

    def body_(k, unused, c0, c1, c2, x):
        return [el.add.bind(c0, k), el.mul.bind(c1, c0), el.add.bind(c2, x), c1, c2]

    b = program(body_, CELL, CELL, CELL, CELL, CELL, CELL, name="body")

    def f(k, c, x):
        outs = control_flow.scan.bind(
            k, k, c, c, c, x, body=b, consts=2, carry=3, length=3, reverse=True, unroll=1
        )
        return [outs[1], outs[3]]

    p = program(f, CELL, CELL, ROW)
    q = check(simplify(p))
    (e,) = q.eqns
    assert (e.params["consts"], e.params["carry"]) == (1, 2)
    assert len(e.inputs) == 3 and len(e.outputs) == 3
    assert len(e.params["body"].eqns) == 2
    args = [np.float32(0.5), np.float32(2), np.float32([1, 2, 3])]
    same_bits(p, q, args)
    small, used = dce(p)
    assert used == (True, True, False)
    assert len(small.inputs) == 2


def test_the_predicate_of_a_loop_keeps_what_it_reads():
    i = Aval((), np.int32)
    avals = (i, CELL, CELL)
    test = program(lambda n, a, b: [el.lt.bind(n, Literal(5, i))], *avals, name="test")
    turn = program(
        lambda n, a, b: [el.add.bind(n, Literal(1, i)), el.add.bind(a, b), el.sin.bind(b)], *avals
    )

    def loop(pick):
        def f(n, a, b):
            outs = control_flow.while_.bind(
                n, a, b, cond=test, body=turn, cond_consts=0, body_consts=0
            )
            return [outs[k] for k in pick]

        return program(f, *avals)

    for pick, carried in (((0,), 1), ((2,), 2), ((1,), 3), ((1, 2), 3)):
        p = loop(pick)
        q = check(simplify(p))
        assert len(q.eqns[0].inputs) == carried
        same_bits(p, q, [np.int32(1), np.float32(1), np.float32(2)])


def test_branches_lose_what_none_of_them_needs():
    i = Aval((), np.int32)
    one = program(lambda x, y, z: [el.sin.bind(x), y], CELL, CELL, CELL)
    two = program(lambda x, y, z: [el.cos.bind(z), y], CELL, CELL, CELL)
    p = program(
        lambda k, x, y, z: control_flow.cond.bind(k, x, y, z, branches=(one, two))[:1],
        i, CELL, CELL, CELL,
    )  # fmt: skip
    q = check(simplify(p))
    (e,) = q.eqns
    assert list(e.inputs) == [p.inputs[0], p.inputs[1], p.inputs[3]]
    for k in range(2):
        same_bits(p, q, [np.int32(k), *np.float32([1, 2, 3])])


def test_mapped_axes_follow():
    row = program(lambda x, y: [el.sin.bind(x), y], CELL, ROW)

    def f(x, y):
        return mapping.map_axes.bind(
            x, y, program=row, in_axes=(0, 1), out_axes=(0, 1), size=2, parallel=False
        )[1:]

    p = program(f, Aval((2,), np.float32), Aval((3, 2), np.float32))
    q = check(simplify(p))
    params = q.eqns[0].params
    assert (params["in_axes"], params["out_axes"]) == ((1,), (1,))
    same_bits(p, q, [np.zeros(2, np.float32), np.ones((3, 2), np.float32)])


def test_unused_constants_go():
    big = asarray(np.ones(50, np.float32))

    def f(x):
        el.add.bind(big, big)
        return [x]

    p = program(f, ROW)
    assert p.consts and not simplify(p).consts and not dce(p)[0].consts


def test_unused_inputs_stay_in_simplify_and_go_in_dce():
    p = program(lambda x, y: [el.sin.bind(y)], ROW, CELL)
    assert simplify(p) is p
    q, used = dce(p)
    assert used == (False, True) and q.in_avals == [CELL]
    assert dce(p, [False])[1] == (False, False)


# ---- inlining --------------------------------------------------------------------------------


def test_inlined_calls_have_their_own_variables_and_share_constants():
    k = asarray(np.float32([1, 2, 3]))
    g = program(lambda x: [el.mul.bind(x, k)], ROW, name="g")
    h = program(
        lambda x: control_flow.call.bind(*control_flow.call.bind(x, program=g), program=g), ROW
    )

    def f(x):
        return [
            el.add.bind(*control_flow.call.bind(x, program=h), k),
            *control_flow.call.bind(x, program=g),
        ]

    p = program(f, ROW)
    q = check(inline_calls(p))
    assert [e.prim.name for e in q.eqns] == ["core.mul", "core.mul", "core.add", "core.mul"]
    assert len(q.consts) == 1 and q.consts[0][1] is k
    assert all(e.where is not None for e in q.eqns), "locations stay"
    same_bits(p, q, [np.float32([1, -2, 3])])
    assert inline_calls(q) is q


def test_inlining_reaches_into_loops():
    g = program(lambda x: [el.sin.bind(x)], CELL, name="g")
    step = program(lambda c: control_flow.call.bind(c, program=g), CELL, name="step")
    p = program(
        lambda c: control_flow.scan.bind(
            c, body=step, consts=0, carry=1, length=3, reverse=False, unroll=1
        ),
        CELL,
    )
    inside = inline_calls(p).eqns[0].params["body"]
    assert [e.prim for e in inside.eqns] == [el.sin] and inside.name == "step"


def test_inlining_keeps_types_where_a_call_weakens_them():
    weak = Aval((), np.float32, True)
    g = program(lambda x: [x, Literal(1.0, weak)], weak, name="g")
    p = program(lambda x: control_flow.call.bind(x, program=g), CELL)
    q = check(inline_calls(p))
    assert q.out_avals == p.out_avals == [weak, weak]


# ---- rules -----------------------------------------------------------------------------------


def test_anyone_may_add_an_identity():
    twice = Primitive("testing.twice", lambda x: x)
    assert simplify_rules.find(twice) is None

    @simplify_rules.rule(twice)
    def _(ins, params, out, made):
        e = made.get(ins[0]) if not isinstance(ins[0], Literal) else None
        return e.inputs[0] if e is not None and e.prim is twice else None

    p = program(lambda x: [twice.bind(twice.bind(x))], ROW)
    assert not simplify(p).eqns


def test_an_identity_of_another_type_is_not_believed():
    odd = Primitive("testing.odd", lambda x: x.strong())
    simplify_rules.rule(odd)(lambda ins, params, out, made: ins[0])
    p = program(lambda x: [odd.bind(x)], Aval((), np.float32, True))
    assert simplify(p) is p


def test_the_structural_trait_is_enough_for_literals():
    moves = Primitive("testing.moves", lambda x: x.with_shape((7,)), (Structural,))
    p = program(lambda: [moves.bind(Literal(3.5, ROW))])
    assert repr(simplify(p).outputs[0]) == "3.5:f32[7]"


def test_programs_are_kept_where_nothing_is_to_be_done():
    p = program(lambda x, y: [el.add.bind(el.sin.bind(x), y)], ROW, ROW)
    assert simplify(p) is p and inline_calls(p) is p and dce(p) == (p, (True, True))


def test_a_simplified_program_is_read_back():
    for seed in range(40):
        q = simplify(random_program(seed))
        assert same_program(parse(show(q)), q)


def test_linear_in_the_number_of_equations():
    """Calls of Python per equation do not grow."""
    import sys

    def calls(n):
        def f(x):
            for _ in range(n):
                x = el.mul.bind(el.sin.bind(x), Literal(2.0, ROW))
            return [x]

        p = program(f, ROW)
        made = 0

        def count(frame, event, arg):
            nonlocal made
            made += event == "call"

        sys.setprofile(count)
        try:
            simplify(p)
        finally:
            sys.setprofile(None)
        return made / n

    assert calls(2000) < 1.1 * calls(200)


def test_bits_tells_zeros_apart():
    assert bits(np.float32(0)) != bits(np.float32(-0.0))
    odd = struct.unpack("f", struct.pack("I", 0x7FC00001))[0]
    assert bits(np.float32(odd)) == bits(np.float32(np.nan))
    assert isinstance(simplify(program(lambda: [])), Program)


def test_literals_are_told_apart_by_their_bits():
    """What equality takes for the same, and what it does not find."""
    numbers = [complex(a, b) for a in (1.0, 0.0, -0.0, math.nan) for b in (0.0, -0.0)]
    programs = [plait.make_program(lambda x, n=n: x * n)(1j) for n in numbers for _ in range(2)]
    keys = [structure(p.eqns, p.inputs, p.outputs) for p in programs]
    assert keys[::2] == keys[1::2] and None not in keys
    assert len(set(keys)) == len(numbers)
