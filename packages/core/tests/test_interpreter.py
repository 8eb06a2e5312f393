"""Interpreters: who is current, who owns a value, what a value that strayed is told.

Invariant: the interpreters are written here, and record what they were asked; what they compute is
compared with plain arithmetic.
"""

import pickle
import threading

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._core import interpreter as module
from plait._core.axis_names import axis_size, named_axes
from plait._core.interpreter import GROUND, is_above, open_under, with_lines
from plait.errors import ConcretizationError, UnexpectedTracerError
from plait.ext.errors import AxisError, MissingRule, PlaitError
from plait.ext.ops.elementwise import add, mul

pnp = plait.numpy


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


class Counting(ext.Interpreter):
    """Counts primitives and hands them to its parent."""

    does = "count"

    def __init__(self, parent, of=None):
        open_under(self, parent)
        self.counts, self.of = {}, of

    def apply(self, prim, args, params):
        self.counts[prim.name] = self.counts.get(prim.name, 0) + 1
        return self.parent.apply(prim, args, params)


def body(x):
    return lax.sin(x) * x + x


# ---- the current interpreter -----------------------------------------------------------------


def test_the_ground_is_current():
    """Every thread starts at the ground, which does primitives at once."""
    assert ext.current() is GROUND and GROUND.parent is None and GROUND.recorders == ()
    found = []
    with ext.opened(Counting(GROUND)):
        thread = threading.Thread(target=lambda: found.append(ext.current()))
        thread.start()
        thread.join()
    assert found == [GROUND]


@pytest.mark.parametrize("enter", [ext.use, ext.opened])
def test_primitives_go_to_the_current_one(enter):
    """Inside the block it is asked, one application at a time; outside it is not."""
    counting = Counting(ext.current())
    with enter(counting) as entered:
        assert entered is counting and ext.current() is counting
        assert body(f64(2.0)).item() == pytest.approx(np.sin(2.0) * 2 + 2)
    assert ext.current() is GROUND
    body(f64(2.0))
    assert counting.counts == {"core.sin": 1, "core.mul": 1, "core.add": 1}


def test_opened_closes_and_use_does_not():
    first, second = Counting(GROUND), Counting(GROUND)
    with ext.use(first):
        pass
    with ext.opened(second):
        assert not second.closed
    assert not first.closed and second.closed
    with pytest.raises(ZeroDivisionError), ext.opened(third := Counting(GROUND)):
        1 / 0
    assert third.closed and ext.current() is GROUND
    with ext.use(first):  # again
        body(f64(1.0))
    assert first.counts["core.mul"] == 1


def test_one_in_the_other():
    """The inner one is asked, and asks the outer one; each is current again in its turn."""
    outer = Counting(GROUND)
    with ext.opened(outer):
        body(f64(1.0))
        inner = Counting(ext.current())
        with ext.opened(inner):
            body(f64(1.0))
        assert ext.current() is outer
        body(f64(1.0))
    assert inner.counts["core.sin"] == 1 and outer.counts["core.sin"] == 3
    assert (outer.depth, inner.depth) == (1, 2)
    assert GROUND.depth == 0


def test_depth_thread_and_staging_of_new_ones():
    free = Counting(None)
    assert (free.depth, free.parent, free.staging) == (1, None, False)
    assert free.thread == threading.get_ident()
    stage = ext.trace.Stage()
    assert stage.staging and Counting(stage).staging and not Counting(GROUND).staging
    assert Counting(Counting(stage)).depth == 3


def test_blocks_left_out_of_order():
    """Leaving an interpreter while another is current is an error, and the ground comes back."""
    first, second = ext.use(Counting(GROUND)), ext.use(Counting(GROUND))
    first.__enter__()
    second.__enter__()
    with pytest.raises(PlaitError, match="left while another is current"):
        first.__exit__(None, None, None)
    assert ext.current() is GROUND
    with pytest.raises(PlaitError, match="left while another is current"):
        second.__exit__(None, None, None)
    assert ext.current() is GROUND


def test_what_every_subclass_must_say():
    with pytest.raises(MissingRule, match="Silent does not say what applying core.mul means") as e:

        class Silent(ext.Interpreter):
            pass

        Silent().apply(mul, (), {})
    assert "apply(self, prim, args, params)" in e.value.fix


# ---- whose a value is -------------------------------------------------------------------------


def test_values_of_a_stage_have_a_type_and_no_value():
    """Branching and converting say what to write instead; shapes are known."""

    def f(x):
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3, 2), 2, 6, np.float64, 3)
        assert not x.weak_type
        for use in (bool, int, range, lambda v: [1][v]):
            with pytest.raises(ConcretizationError, match="lax.cond|make the argument static"):
                use(x[0, 0])
        for use, what in (
            (float, r"float\(\)"),
            (complex, r"complex\(\)"),
            (np.asarray, r"numpy.asarray\(\)"),
            (lambda v: v.item(), r"\.item\(\)"),
            (lambda v: v.tolist(), r"\.tolist\(\)"),
            (pickle.dumps, "pickling"),
        ):
            with pytest.raises(ConcretizationError, match=what + ".*test_interpreter.py:"):
                use(x[0, 0])
        with pytest.raises(TypeError, match="len"):
            len(x[0, 0])
        return x

    plait.jit(f)(f64(np.ones((3, 2))))


@pytest.mark.feature("C02")
def test_what_is_done_to_which_function():
    def named(x):
        raise AssertionError

    assert Counting(None).title() == "count"
    title = Counting(None, of=named).title()
    assert title.startswith("count of ") and "named" in title and "test_interpreter.py" in title


@pytest.mark.feature("C01")
def test_a_value_that_escaped():
    """It names the line that made it, and whose it was, whoever uses it and however."""
    kept = []

    def leak(x):
        kept.append(x * 2.0)
        return x

    plait.jit(leak)(f64(1.0))
    (x,) = kept
    uses = [
        lambda: x + 1.0,
        lambda: bool(x),
        lambda: int(x),
        lambda: float(x),
        lambda: np.asarray(x),
        lambda: x.item(),
        lambda: plait.jit(lambda y: y + x)(1.0),
        lambda: mul.bind(x, x),
    ]
    for use in uses:
        with pytest.raises(UnexpectedTracerError, match="leak") as caught:
            use()
        line = leak.__code__.co_firstlineno + 1
        assert f"test_interpreter.py:{line}" in str(caught.value)
    counting = Counting(GROUND)
    with ext.opened(counting), pytest.raises(UnexpectedTracerError):
        x + 1.0


def test_who_is_above():
    """A value may be used under its interpreter, those inside it, and where it records."""
    outer = Counting(GROUND)
    inner = Counting(outer)
    other = Counting(outer)
    assert is_above(outer, inner) and is_above(inner, inner) and is_above(GROUND, inner)
    assert not is_above(inner, outer) and not is_above(other, inner)
    assert not is_above(outer, None)
    inner.beside = stage = ext.trace.Stage()
    assert is_above(stage, inner) and is_above(stage, Counting(inner))
    assert not is_above(stage, outer)


def test_a_value_below_its_own_level():
    """A rule that closes over a value of the very carrier that it serves is told so."""

    class Own(ext.Carrier):
        rules = ext.RuleTable("core_interpreter_own")
        does = "own"

        def part_avals(self, aval, form):
            return (aval,)

        def coerce(self, aval, parts, f, g):
            return parts

        def run(self, prim, rule, args, params):
            return rule(args)

    held = []
    Own.rules.rule(mul)(lambda args: add.bind(held[0], held[0]))
    own, x = Own(GROUND), f64(1.0)
    with ext.opened(own):
        held.append(own.lift(x.aval, "own", (x,)))
        with pytest.raises(UnexpectedTracerError, match=r"core.add was given .* below own"):
            held[0] * 2.0
        assert ext.current() is own


# ---- where things are recorded -----------------------------------------------------------------


def test_recorders():
    """The stages that record, innermost first: the one beside comes before those of the parent."""
    stage = ext.trace.Stage()
    counting = Counting(stage)
    assert stage.recorders == (stage,) and counting.recorders == (stage,)
    tangents = ext.trace.Stage()
    counting.beside = tangents
    assert counting.recorders == (tangents, stage)
    assert Counting(counting).recorders == (tangents, stage)
    assert Counting(GROUND).recorders == () and Counting(None).recorders == ()


def test_lines_that_are_told_are_taken_back():
    stage, tangents = ext.trace.Stage(), ext.trace.Stage()
    counting = Counting(stage)
    counting.beside, stage.where = tangents, "before"
    with ext.use(counting):
        with pytest.raises(ZeroDivisionError), with_lines() as recorders:
            for p in recorders:
                p.where = "inside"
            assert (stage.where, tangents.where) == ("inside", "inside")
            1 / 0
    assert (stage.where, tangents.where) == ("before", None)


# ---- named axes -------------------------------------------------------------------------------


def binding(parent, **sizes):
    found = Counting(parent)
    found.sizes = sizes
    return found


def test_named_axes():
    """The innermost axis of a name counts; several names are a product; others are unbound."""
    outer = binding(GROUND, i=2, j=3)
    inner = binding(Counting(outer), i=5, k=7)
    assert named_axes() == {}
    with ext.use(inner):
        assert named_axes() == {"i": 5, "j": 3, "k": 7}
        assert [axis_size(n) for n in "ijk"] == [5, 3, 7]
        assert axis_size(("i", "j")) == axis_size(["j", "i"]) == 15 and axis_size(()) == 1
        for name in ("m", ("i", "m"), {"i"}):
            with pytest.raises(AxisError, match="is bound here") as caught:
                axis_size(name)
            assert "axis_name=" in caught.value.fix
    with ext.use(outer):
        assert axis_size("i") == 2
        with pytest.raises(AxisError, match="'k'"):
            axis_size("k")
    with pytest.raises(AxisError):
        axis_size("i")


def test_lists_of_results():
    assert module.as_list((1, 2)) == [1, 2] and module.as_list([1]) == [1]
    assert module.as_list(3) == [3]
    given = [1]
    assert module.as_list(given) is not given


# ---- threads ----------------------------------------------------------------------------------


def test_a_thread_computes_with_a_value_of_its_parent():
    """A thread that is started inside an open interpreter may compute with its values: it is done
    there."""
    found = []

    def f(x):
        thread = threading.Thread(target=lambda: found.append(x * 3.0))
        thread.start()
        thread.join()
        return found[-1] + 1.0

    assert plait.jit(f)(f64(2.0)).item() == 7


@pytest.mark.parametrize("shape", [(0,), (2,), (1, 3), (2, 0)])
def test_the_truth_of_many_elements_is_refused_in_a_trace_as_outside(shape):
    x = np.ones(shape, np.float32)
    with pytest.raises(ValueError):
        bool(plait.numpy.asarray(x))
    with pytest.raises(ValueError, match=r"has no truth value(.|\n)*x.any\(\)"):
        plait.jit(bool)(x)
    with pytest.raises(ext.errors.ConcretizationError):  # one element: only the value is unknown
        plait.jit(bool)(np.ones(1))
