"""References as rows of loops, and written by predicates: against the same loop over numpy's views.

Invariant: what is expected was computed by numpy, of which a row is a view that can be written.
"""

from importlib.util import find_spec

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, AxisError, NoArray, OperandTypeError, PlaitError

A = np.arange(12, dtype=np.float32).reshape(4, 3) / 4


def view(x, i):
    """A row as an array that can be written, without axes too."""
    return x[i : i + 1].reshape(x.shape[1:])


def running(c, r):
    """A step that reads, writes a part, and gives what is there."""
    r[...] = r[...] * 2 + c
    return c + 1, r[...]


def first_only(c, r):
    r[0] = c
    return c + r[...].sum(), c


def untouched(c, r):
    return c + r[...].sum(), r[...]


def counted(c, r):
    def turn(i, _):
        r[...] = r[...] + i
        return None

    if isinstance(r, np.ndarray):
        for i in range(3):
            turn(i, None)
    else:
        lax.fori_loop(0, 3, turn, None)
    return c + r[...].sum(), None


STEPS = [running, first_only, untouched, counted]


def by_numpy(step, c, rows, reverse=False):
    order = range(len(rows))
    out = [None] * len(rows)
    for i in reversed(order) if reverse else order:
        c, y = step(c, view(rows, i))
        out[i] = None if y is None else np.array(y)
    return c, out


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_a_step_writes_its_row(step, reverse, staged):
    rows = A.copy()
    want, outs = by_numpy(step, np.float32(1), rows, reverse)
    ref = plait.new_ref(pnp.asarray(A))
    run = lambda r: lax.scan(step, pnp.float32(1), r, reverse=reverse)  # noqa: E731
    got, ys = (plait.jit(run) if staged else run)(ref)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(ref[...], rows, rtol=1e-6)
    if outs[0] is not None:
        np.testing.assert_allclose(ys, np.stack(outs), rtol=1e-6)


def test_rows_without_axes_and_rows_beside_arrays():
    ref, other = plait.new_ref(pnp.arange(3.0)), plait.new_ref(pnp.zeros((3, 2)))

    def step(c, xs):
        xs["r"][...] += xs["x"]
        xs["q"][1] = c
        return c + xs["r"][...], None

    total, _ = lax.scan(step, 0.0, {"r": ref, "q": other, "x": pnp.ones(3) * 10})
    assert ref[...].tolist() == [10, 11, 12]
    assert other[...].tolist() == [[0, 0], [0, 10], [0, 21]]
    assert float(total) == 33


def test_loops_in_loops_take_rows_of_rows():
    ref = plait.new_ref(pnp.asarray(A))

    def inner(c, r):
        r[...] = r[...] + c
        return c + 1, None

    plait.jit(lambda q: lax.scan(lambda c, r: lax.scan(inner, c, r), 0.0, q))(ref)
    assert ref[...].tolist() == (A + np.arange(12).reshape(4, 3)).tolist()


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_map_over_references(staged, jitted):
    ref = plait.new_ref(pnp.asarray(A))

    def f(r):
        old = r[...]
        r[...] = old * old
        return old.sum()

    run = lambda q: lax.map(f, q)  # noqa: E731
    with plait.disable_jit(not jitted):
        sums = (plait.jit(run) if staged else run)(ref)
    np.testing.assert_allclose(sums, A.sum(1), rtol=1e-6)
    np.testing.assert_allclose(ref[...], A * A, rtol=1e-6)


def test_what_is_only_read_is_not_written():
    ref = plait.new_ref(pnp.arange(3.0))
    program = plait.make_program(lambda: lax.map(lambda r: r[...] * 2, ref))()
    assert "state.set" not in str(program)
    written = plait.make_program(lambda: lax.map(lambda r: r.addupdate(1.0), ref))()
    assert "state.set" in str(written)


def test_a_step_that_fails_writes_nothing_and_gives_the_reference_back():
    ref = plait.new_ref(pnp.arange(3.0))

    def bad(c, r):
        r[...] = 7.0
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        lax.scan(bad, 0.0, ref)
    ref[0] += 5
    assert ref[...].tolist() == [5, 1, 2]


PARTS = {
    "the whole meanwhile": (
        lambda r: lax.scan(lambda c, q: (c + r[0], None), 0.0, r), ArgumentError, "has its parts",
    ),
    "the whole written meanwhile": (
        lambda r: lax.map(lambda q: r.write(r[...]), r), ArgumentError, "has its parts",
    ),
    "twice": (
        lambda r: lax.scan(lambda c, q: (c, None), 0.0, (r, r)), ArgumentError, "given twice",
    ),
    "returned": (lambda r: lax.map(lambda q: q, r), OperandTypeError, "got it as a part"),
    "carried on": (
        lambda r: lax.scan(lambda c, q: (q, None), 0.0, r), OperandTypeError, "got it as a part",
    ),
    "without rows": (
        lambda r: lax.map(lambda q: q[...], plait.new_ref(1.0)), AxisError, "no rows",
    ),
    "of another length": (
        lambda r: lax.scan(lambda c, q: (c, None), 0.0, (r, pnp.ones(3))), AxisError, "differ",
    ),
    "frozen": (lambda r: lax.map(plait.freeze, r), ArgumentError, "frozen"),
    "no pair": (lambda r: lax.scan(lambda c, q: c, 0.0, r), PlaitError, "pair"),
    "reduced": (
        lambda r: lax.associative_scan(lambda a, b: a, r), OperandTypeError, "reference",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_use_of_a_part(name):
    use, kind, text = PARTS[name]
    ref = plait.new_ref(pnp.zeros(2))
    with pytest.raises(kind, match=text) as e:
        use(ref)
    assert e.value.fix and __file__ in str(e.value)
    assert ref[...].tolist() == [0, 0]  # nothing is lent any more


def test_a_part_ends_with_its_step():
    ref, seen = plait.new_ref(pnp.zeros(2)), []
    with plait.disable_jit():
        lax.map(lambda q: seen.append(q), ref)
    lax.map(lambda q: seen.append(q), ref)
    for q in seen:
        with pytest.raises(PlaitError):
            q[...]


# ---- predicates ------------------------------------------------------------------------------


def asked(r, q, loop):
    """A loop whose predicate counts how often it is asked, and whose body reads that."""

    def more(s):
        r[...] = r[...] + 1
        return (s < 20) & (q[...] < 30)

    def turn(s):
        q[...] = q[...] + r[...]
        return s + 2

    return loop(more, turn, 1)


def python_while(more, turn, s):
    while more(s):
        s = turn(s)
    return s


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("start", [0, 25, 40])
def test_a_predicate_writes(start, staged):
    r, q = np.zeros((), np.int32), np.array(start, np.int32)
    want = asked(r, q, python_while)
    refs = [plait.new_ref(pnp.int32(0)), plait.new_ref(pnp.int32(start))]
    run = lambda a, b: asked(a, b, lax.while_loop)  # noqa: E731
    got = (plait.jit(run) if staged else run)(*refs)
    assert [int(got), *(int(x[...]) for x in refs)] == [want, int(r), int(q)]


def test_a_predicate_writes_what_it_takes_from_outside():
    limit, log = plait.new_ref(10), plait.new_ref(pnp.zeros(4, "int32"))
    scale = pnp.int32(3)

    def more(s):
        i, x = s
        log[i] = x * scale
        limit[...] -= 1
        return x * scale < limit[...]

    got = plait.jit(lambda: lax.while_loop(more, lambda s: (s[0] + 1, s[1] + 1), (0, 1)))()
    i, x, bound, seen = 0, 1, 10, [0] * 4
    while True:
        seen[i], bound = x * 3, bound - 1
        if not x * 3 < bound:
            break
        i, x = i + 1, x + 1
    assert [int(v) for v in got] == [i, x]
    assert (int(limit[...]), log[...].tolist()) == (bound, seen)


def test_a_predicate_that_writes_alone():
    ref = plait.new_ref(0)

    def more(_):
        ref[...] += 1
        return ref[...] < 5

    assert lax.while_loop(more, lambda _: None, None) is None
    assert int(ref[...]) == 5


# ---- other ways to make and end them ---------------------------------------------------------


@pytest.mark.parametrize("staged", [False, True])
def test_a_reference_to_what_is_written_later(staged):
    def f(x):
        ref = plait.empty_ref(plait.ShapeDtypeStruct((3,), "float32"))
        ref[1] = x
        return ref[...]

    got = (plait.jit(f) if staged else f)(2.0)
    assert (got.tolist(), str(got.dtype)) == ([0, 2, 0], "float32")
    with pytest.raises(ArgumentError, match="type of an array"):
        plait.empty_ref(3)
    with pytest.raises(ArgumentError, match="memory_space"):
        plait.empty_ref(plait.ShapeDtypeStruct((), "float32"), memory_space="host")


def test_a_freed_reference_is_gone():
    ref = plait.new_ref(1.0)
    plait.free_ref(ref)
    for use in (lambda: ref[...], lambda: plait.free_ref(ref), lambda: ref.write(2.0)):
        with pytest.raises(ArgumentError, match="used again"):
            use()


def test_adding_to_a_part():
    ref = plait.new_ref(pnp.arange(4.0))
    ref.addupdate(1.0, 0)
    ref.addupdate(pnp.ones(4))
    ref.addupdate(pnp.ones(2), (slice(1, 3),))
    assert ref[...].tolist() == [2, 3, 4, 4]


def test_where_it_lies():
    ref = plait.new_ref(pnp.zeros(3))
    if find_spec("plait_sharding"):
        assert ref.sharding == ref[...].sharding
    else:
        with pytest.raises(AttributeError, match="plait-sharding, which is not installed"):
            _ = ref.sharding
    assert ref.committed == ref[...].committed
    assert ref.unsafe_buffer_pointer() == ref[...].unsafe_buffer_pointer()
    with pytest.raises(NoArray, match="neither memory nor a place") as e:
        plait.jit(lambda: ref.sharding)()
    assert e.value.fix
