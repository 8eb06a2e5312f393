"""References at once, under jit, in branches and loops: what Python and numpy do to a variable."""

import copy
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import (
    ArgumentError,
    ConcretizationError,
    MissingRule,
    OperandTypeError,
    PlaitError,
    ShapeError,
    UnexpectedTracerError,
)


def of(ref):
    return np.asarray(ref[...])


# ---- at once ---------------------------------------------------------------------------------


def test_a_reference_is_an_array_that_is_written():
    ref, want = plait.new_ref(np.arange(6, dtype="float32").reshape(2, 3)), np.arange(6.0)
    want = want.reshape(2, 3)
    ref[0, 1] = 10.0
    want[0, 1] = 10
    ref[1] += 1
    want[1] += 1
    ref[:, ::2] *= 3
    want[:, ::2] *= 3
    ref[pnp.array([0, 1]), pnp.array([2, 0])] = pnp.array([7.0, 8.0])
    want[[0, 1], [2, 0]] = [7, 8]
    assert of(ref).tolist() == want.tolist()
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.float32, 2, 6, 2)
    assert [row.tolist() for row in ref] == want.tolist()
    assert repr(plait.new_ref(pnp.arange(3))) == "Ref([0, 1, 2], dtype=int32)"
    assert isinstance(ref, plait.Ref) and not isinstance(ref, plait.Array)


def test_what_was_read_stays():
    ref = plait.new_ref(pnp.zeros(2))
    before = ref[...]
    ref[...] = pnp.ones(2)
    assert before.tolist() == [0, 0] and of(ref).tolist() == [1, 1]


def test_functions_of_references():
    ref = plait.new_ref(pnp.arange(4))
    assert plait.ref.get(ref, slice(1, 3)).tolist() == [1, 2]
    assert plait.ref.get(ref).tolist() == [0, 1, 2, 3]
    assert int(plait.ref.swap(ref, 2, 10)) == 2
    plait.ref.set(ref, 0, -1)
    assert plait.ref.swap(ref, ..., pnp.arange(4) * 2).tolist() == [-1, 1, 10, 3]
    plait.ref.addupdate(ref, pnp.array([0, 0, 3]), pnp.array([1, 2, 3]))
    assert of(ref).tolist() == [3, 2, 4, 9]
    plait.ref.addupdate(ref, ..., pnp.ones(4, "int32"))
    assert plait.freeze(ref).tolist() == [4, 3, 5, 10]


def test_two_references_are_two():
    ref = plait.new_ref(pnp.zeros(2))
    others = [copy.copy(ref), copy.deepcopy({"a": ref})["a"], pickle.loads(pickle.dumps(ref))]
    ref[0] = 5.0
    assert [of(o).tolist() for o in others] == [[0, 0]] * 3
    assert ref == ref and ref != others[0] and len({ref, *others}) == 4


def test_numbers_give_way_and_nothing_else_is_converted():
    ref = plait.new_ref(pnp.zeros(2))
    ref[0] = 3
    ref[1] = np.float32(1)
    assert of(ref).tolist() == [3, 1] and of(ref).dtype == np.float32
    whole = plait.new_ref(pnp.zeros(2, "int32"))
    for value in (1.5, pnp.float32(1), pnp.int8(1)):
        with pytest.raises(OperandTypeError, match=r"is written into a reference to i32\[2\]"):
            whole[0] = value
    with pytest.raises(OperandTypeError, match="astype"):
        ref[...] = pnp.arange(2)
    assert of(whole).tolist() == [0, 0]


@pytest.mark.parametrize("index, value", [(..., 1.0), (..., np.ones(3, "float32")), (0, [1.0]),
                                          (slice(0, 1), np.ones(2, "float32"))])  # fmt: skip
def test_shapes_must_be_those_of_the_part(index, value):
    ref = plait.new_ref(pnp.zeros(2))
    with pytest.raises(ShapeError, match="is written into a"):
        ref[index] = pnp.asarray(value)
    assert of(ref).tolist() == [0, 0]


def test_after_freezing_there_is_no_reference():
    ref = plait.new_ref(1.0)
    assert float(plait.freeze(ref)) == 1
    for use in (lambda: ref[...], lambda: ref.write(2.0), lambda: plait.freeze(ref),
                lambda: plait.jit(lambda: ref[...])()):  # fmt: skip
        with pytest.raises(ArgumentError, match="was frozen") as e:
            use()
        assert __file__ in str(e.value) and e.value.fix


REFUSED = {
    "+": lambda r: r + 1,
    "radd": lambda r: 1 + r,
    "numpy": lambda r: np.asarray(r),
    "numpy+": lambda r: np.ones(2) + r,
    "-r": lambda r: -r,
    "@": lambda r: r @ r,
    "<": lambda r: r < 1,
    "sin": lambda r: pnp.sin(r),
    "where": lambda r: pnp.where(True, r, r),
    "reshape": lambda r: pnp.reshape(r, (2, 1)),
    "array": lambda r: pnp.array(r),
    "bool": lambda r: bool(r),
    "float": lambda r: float(r),
    "int": lambda r: int(r),
    "index": lambda r: pnp.arange(3)[r],
    "own index": lambda r: r[r],
    "at": lambda r: r.at[0].set(1),
    "sum": lambda r: r.sum(),
    "T": lambda r: r.T,
    "in": lambda r: 1.0 in r,
    "new_ref": lambda r: plait.new_ref(r),
    "written": lambda r: plait.new_ref(pnp.zeros(2)).write(r),
    "callback": lambda r: plait.pure_callback(
        lambda x: x, plait.ShapeDtypeStruct((2,), "float32"), r
    ),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_a_reference_is_no_array(name, staged):
    ref = plait.new_ref(pnp.zeros(2))
    use = REFUSED[name]
    with pytest.raises((PlaitError, TypeError), match="ref") as e:
        plait.jit(use)(ref) if staged else use(ref)
    assert isinstance(e.value, PlaitError) and e.value.fix and __file__ in str(e.value)


def test_names_that_arrays_have_are_not_there():
    ref = plait.new_ref(pnp.zeros(2))
    assert not any(hasattr(ref, name) for name in ("T", "at", "sum", "astype", "devices", "no"))


def test_what_is_given_to_the_functions():
    with pytest.raises(ArgumentError, match="needs a reference"):
        plait.freeze(pnp.zeros(2))
    with pytest.raises(ArgumentError, match="memory_space"):
        plait.new_ref(1.0, memory_space="host")
    with pytest.raises(OperandTypeError, match="not an array"):
        plait.new_ref([1, 2])
    with pytest.raises(ArgumentError, match=r"plait\.new_ref"):
        plait.Ref(1)


# ---- under jit -------------------------------------------------------------------------------


def test_a_jitted_function_writes_what_it_closes_over():
    seen, runs = plait.new_ref(pnp.zeros(3)), []

    @plait.jit
    def observe(x):
        runs.append(1)
        seen[...] += x
        seen[0] = seen[1] * 2
        return seen[...] * 10

    want = np.zeros(3)
    for k in range(4):
        x = np.arange(3.0) + k
        want += x
        want[0] = want[1] * 2
        assert observe(pnp.asarray(x, "float32")).tolist() == (want * 10).tolist()
        assert of(seen).tolist() == want.tolist()
    assert len(runs) == 1


def test_what_is_written_between_calls_is_seen():
    scale = plait.new_ref(1.0)
    f = plait.jit(lambda x: x * scale[...])
    got = []
    for k in (2.0, 3.0):
        scale[...] = k
        got.append(float(f(5.0)))
    assert got == [10, 15]


def test_references_are_arguments():
    runs = []

    @plait.jit
    def step(state, x):
        runs.append(1)
        state["n"][...] += 1
        state["sum"][...] += x
        return state["n"][...]

    states = [{"n": plait.new_ref(0), "sum": plait.new_ref(pnp.zeros(2))} for _ in range(2)]
    for k, s in ((0, 1.0), (1, 2.0), (0, 4.0)):
        step(states[k], s * pnp.ones(2))
    assert [int(s["n"][...]) for s in states] == [2, 1]
    assert [of(s["sum"]).tolist() for s in states] == [[5, 5], [2, 2]]
    assert len(runs) == 1  # one trace for all references of these types


def test_jitted_functions_within_jitted_functions():
    ref = plait.new_ref(1.0)

    @plait.jit
    def double():
        ref[...] *= 2

    @plait.jit
    def inner(r, x):
        r[...] += x
        double()

    @plait.jit
    def outer(x):
        local = plait.new_ref(x)
        inner(local, x)
        inner(local, local[...])
        return local[...]

    assert float(outer(3.0)) == 12 and float(ref[...]) == 4


@pytest.mark.parametrize("options", [{}, {"inline": True}, {"static_argnums": 1},
                                     {"keep_unused": True}])  # fmt: skip
def test_options_of_jit(options):
    ref = plait.new_ref(1.0)

    def f(r, n):
        r[...] += n
        return r[...] * 2

    assert float(plait.jit(f, **options)(ref, 3)) == 8 and float(ref[...]) == 4
    with plait.disable_jit():
        assert float(plait.jit(f, **options)(ref, 3)) == 14 and float(ref[...]) == 7


def test_keys_and_integers_and_numbers_are_held():
    key = plait.new_ref(plait.random.key(7))

    @plait.jit
    def draw():
        key[...], sub = plait.random.split(key[...])
        return plait.random.bits(sub)

    want, got = plait.random.key(7), []
    for _ in range(3):
        want, sub = plait.random.split(want)
        got.append((int(draw()), int(plait.random.bits(sub))))
    assert len({a for a, _ in got}) == 3 and all(a == b for a, b in got)


def test_a_reference_that_jit_makes_is_gone():
    held = []
    f = plait.jit(lambda x: held.append(plait.new_ref(x)))
    f(1.0)
    for use in (lambda: held[0][...], lambda: held[0].write(1.0)):
        with pytest.raises(UnexpectedTracerError, match="outlived jit"):
            use()


def test_shapes_alone_write_nothing():
    ref = plait.new_ref(pnp.zeros(2))

    def f(r):
        r[0] = 5.0
        return r[...]

    assert plait.eval_shape(f, ref).shape == (2,)
    text = str(plait.make_program(f)(ref))
    assert "state.get" in text and "state.set" in text and "does state" in text
    assert of(ref).tolist() == [0, 0]


def test_the_program_of_a_read_that_nobody_uses_writes_still():
    ref = plait.new_ref(0)

    @plait.jit
    def f(x):
        ref[...] + 1
        ref[...] = 3
        ref[...] = ref[...] + 1
        return x

    f(1.0)
    assert int(ref[...]) == 4


# ---- branches and loops ----------------------------------------------------------------------


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("index", range(4))
def test_branches(index, staged):
    a, b = plait.new_ref(1.0), plait.new_ref(pnp.zeros(2))

    def first():
        a[...] = 10.0
        return 1.0

    def second():
        b[0] = a[...] * 7
        return 2.0

    def third():
        a[...], b[1] = b[1] - 1, a[...]
        return 3.0

    def f(i):
        return lax.switch(i, [first, second, third, lambda: 4.0])

    assert float((plait.jit(f) if staged else f)(index)) == index + 1
    want = [(10, [0, 0]), (1, [7, 0]), (-1, [0, 1]), (1, [0, 0])][index]
    assert (float(a[...]), of(b).tolist()) == want


def test_a_branch_takes_references():
    a = plait.new_ref(pnp.arange(2.0))

    def double(r, x):
        r[...] *= x

    for p, want in ((True, [0, 3]), (False, [0, 3])):
        lax.cond(p, double, lambda r, x: None, a, 3.0)
        assert of(a).tolist() == want


@pytest.mark.parametrize("staged", [False, True])
def test_scan_carries_what_is_written(staged):
    total, log, scale = plait.new_ref(0.0), plait.new_ref(pnp.zeros(4)), plait.new_ref(2.0)

    def body(c, x):
        total[...] += x * scale[...]
        log[x.astype("int32")] = c
        return c + 1, total[...]

    def f(xs):
        return lax.scan(body, 10.0, xs)

    xs = np.array([2.0, 0.0, 3.0, 1.0], "float32")
    last, totals = (plait.jit(f) if staged else f)(pnp.asarray(xs))
    assert float(last) == 14 and totals.tolist() == np.cumsum(2 * xs).tolist()
    assert of(log).tolist() == [11, 13, 10, 12] and float(total[...]) == 12
    assert float(scale[...]) == 2


@pytest.mark.parametrize("staged", [False, True])
def test_a_predicate_reads_what_the_body_writes(staged):
    x, turns, limit = plait.new_ref(1.0), plait.new_ref(0), plait.new_ref(50.0)

    def body(c):
        x[...] *= 3
        turns[...] += 1
        return c + x[...]

    def f(c):
        return lax.while_loop(lambda c: x[...] < limit[...], body, c)

    assert float((plait.jit(f) if staged else f)(0.5)) == 0.5 + 3 + 9 + 27 + 81
    assert (float(x[...]), int(turns[...])) == (81, 4)


def test_loops_in_loops():
    table = plait.new_ref(pnp.zeros((3, 4), "int32"))

    def inside(i, j):
        lax.cond((i + j) % 2 == 0, lambda: table.write(table[...].at[i, j].add(i * j + 1)),
                 lambda: None)  # fmt: skip

    @plait.jit
    def f():
        lax.fori_loop(0, 3, lambda i, _: lax.fori_loop(0, 4, lambda j, _: inside(i, j), None), None)

    f()
    f()
    want = np.zeros((3, 4), int)
    for i in range(3):
        for j in range(4):
            want[i, j] += 2 * (i * j + 1) if (i + j) % 2 == 0 else 0
    assert of(table).tolist() == want.tolist()


def test_map_reads_and_scans_write():
    ref = plait.new_ref(2.0)
    assert lax.map(lambda x: x * ref[...], pnp.arange(3.0), batch_size=2).tolist() == [0, 2, 4]
    lax.map(lambda x: ref.write(ref[...] + x), pnp.arange(4.0))
    assert float(ref[...]) == 8
    with pytest.raises(MissingRule, match="writes a reference of outside"):
        lax.map(lambda x: ref.write(x), pnp.arange(4.0), batch_size=2)


# ---- what is refused -------------------------------------------------------------------------


def _twice(a, b):
    a[...] += 1
    b[...] += 1


def _predicate(ref):
    def p(i):
        ref[...] += 1
        return i < 3

    return lax.while_loop(p, lambda i: i + 1, 0, max_steps=2)


MISUSED = {
    "returned": (lambda r: plait.jit(lambda q: q)(r), OperandTypeError, "result of"),
    "made and returned": (
        lambda r: plait.jit(lambda: {"a": plait.new_ref(1.0)})(), OperandTypeError, r"\['a'\]",
    ),
    "closed over and returned": (lambda r: plait.jit(lambda: r)(), OperandTypeError, "result"),
    "of a branch": (
        lambda r: lax.cond(True, lambda: r, lambda: r), OperandTypeError, "cannot be a reference",
    ),
    "carried": (
        lambda r: lax.scan(lambda c, x: (c, x), r, pnp.ones(2)), OperandTypeError, "result",
    ),
    "stacked": (
        lambda r: lax.scan(lambda c, x: (c, r), 0.0, pnp.ones(2)), OperandTypeError, r"result\[1\]",
    ),
    "in a while loop": (
        lambda r: lax.while_loop(lambda q: True, lambda q: q, r), OperandTypeError, "result",
    ),
    "twice": (lambda r: plait.jit(_twice)(r, r), ArgumentError, "given twice"),
    "argument and closed over": (
        lambda r: plait.jit(lambda q: _twice(q, r))(r), ArgumentError, "given twice",
    ),
    "donated": (
        lambda r: plait.jit(lambda q: q[...], donate_argnums=0)(r), OperandTypeError, "donate",
    ),
    "frozen inside": (lambda r: plait.jit(lambda: plait.freeze(r))(), ArgumentError, "of outside"),
    "written by the predicate of a bounded loop": (_predicate, MissingRule, "max_steps"),
    "lowered": (
        lambda r: plait.jit(lambda q: q[...]).lower(r), OperandTypeError, "program takes arrays",
    ),
    "lowered with it": (
        lambda r: plait.jit(lambda: r[...]).lower(), OperandTypeError, "program takes arrays",
    ),
    "one step of a reduction": (
        lambda r: lax.reduce(pnp.ones(3), 0.0, lambda a, b: a + r[0], (0,)), PlaitError, "state",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSED)
def test_misuse_is_told(name):
    use, kind, text = MISUSED[name]
    ref = plait.new_ref(pnp.zeros(2))
    with pytest.raises(kind, match=text) as e:
        use(ref)
    assert e.value.fix and __file__ in str(e.value)
    assert of(ref).tolist() == [0, 0]


def test_the_same_reference_may_be_read_twice():
    ref = plait.new_ref(pnp.arange(2.0))
    assert plait.jit(lambda a, b: a[...] + b[...])(ref, ref).tolist() == [0, 2]


def test_indices_outside_are_refused():
    ref = plait.new_ref(pnp.zeros(3))
    for use in (lambda: ref[3], lambda: ref.__setitem__(-4, 1.0), lambda: ref[0, 0]):
        with pytest.raises(IndexError):
            use()


def test_a_value_of_a_stage_does_not_leave_it():
    ref, kept = plait.new_ref(0.0), []
    plait.jit(lambda x: kept.append(x))(1.0)
    with pytest.raises(UnexpectedTracerError):
        ref[...] = kept[0]
    with pytest.raises(ConcretizationError):
        plait.jit(lambda: bool(ref[...]))()
    assert float(ref[...]) == 0


def test_a_block_of_settings_is_no_home():
    with plait.default_matmul_precision("highest"):
        ref = plait.new_ref(1.0)
    ref[...] += 1
    assert float(ref[...]) == 2
