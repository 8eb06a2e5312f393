"""Staging Python into Programs, running them, sweeping them, checking them.

Invariant: what a Program computes is compared with the Python it was staged from, run by numpy.
"""

import gc
import weakref

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._base.errors import PlaitError, ProgramError
from plait._core.check import check
from plait._core.ir import (
    Eqn,
    Program,
    Thunk,
    derived,
    dims_of,
    live_equations,
    ordered,
    programs_in,
)
from plait._core.staging import Stage, collector_paused, stage, staged
from plait.errors import UnexpectedTracerError
from plait.ext.ops.elementwise import add, mul, sin

pnp = plait.numpy
V = ext.Aval((3,), np.float64)
X = np.array([0.5, 1.0, -2.0])


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


def run(program, *args):
    return [np.asarray(o) for o in ext.evaluate(program, [f64(a) for a in args])]


def names(program):
    return [e.prim.name for e in program.eqns]


# ---- what is recorded --------------------------------------------------------------------------


def test_a_program_is_what_python_did():
    """One equation for each primitive in order, with types, inputs and outputs."""
    p = staged(lambda x, y: [lax.sin(x) * y, x + y], [V, V], "f")
    assert names(p) == ["core.sin", "core.mul", "core.add"]
    assert p.in_avals == [V, V] and p.out_avals == [V, V] and p.name == "f"
    assert repr(p) == "<Program f: 2 -> 2, 3 equations>" and "sin" in str(p)
    a, b = run(p, X, X + 1)
    np.testing.assert_allclose(a, np.sin(X) * (X + 1))
    np.testing.assert_allclose(b, X + X + 1)


def test_python_runs_once():
    """The program is run as often as wanted; Python's branches are taken while it is staged."""
    turns = []

    def f(x):
        turns.append(x)
        for _ in range(3):
            x = x + x if len(turns) == 1 else x * 0.0
        return [x]

    p = staged(f, [V])
    for _ in range(3):
        np.testing.assert_allclose(run(p, X)[0], 8 * X)
    assert len(turns) == 1 and names(p) == ["core.add"] * 3


def test_results_that_are_inputs_and_numbers():
    """An output may be an input, twice, or a number; an input may be unused."""
    p = staged(lambda x, y: [x, x, 2.5], [V, V])
    assert not p.eqns and len(p.inputs) == 2
    a, b, c = ext.evaluate(p, [f64(X), f64(X)])
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, X)
    assert pnp.asarray(ext.materialise_at_ground(c)).item() == 2.5


def test_arrays_become_constants_once():
    """An array that is closed over is a constant, one however often it is used."""
    a, b = f64(X), f64(X)
    p, captured = stage(lambda x: [x * a + a * b], [V])
    assert captured == [] and [x for _, x in p.consts] == [a, b]
    assert set(p.constants) == {id(a), id(b)}
    np.testing.assert_allclose(run(p, X)[0], X * X + X * X)
    with_numpy = staged(lambda x: [x * X], [V])
    np.testing.assert_allclose(run(with_numpy, X + 1)[0], (X + 1) * X)


def test_constants_of_sub_programs():
    a = f64(X)
    inner = staged(lambda x: [x * a], [V])
    outer = staged(lambda x: ext.ops.control_flow.call.bind(x, program=inner), [V])
    assert outer.consts == [] and set(outer.constants) == {id(a)}
    np.testing.assert_allclose(run(outer, X)[0], X * X)


def test_values_of_enclosing_stages_are_captured():
    """They become the leading inputs, once each, in the order in which they were met."""
    made = []

    def outer(x, y):
        p, captured = stage(lambda z: [z * y + x + y], [V])
        made.append((p, captured))
        return ext.ops.control_flow.call.bind(*captured, x, program=p)

    p = staged(outer, [V, V])
    inner, captured = made[0]
    assert captured == [p.inputs[1], p.inputs[0]] and len(inner.inputs) == 3
    a, b = X, X + 1
    np.testing.assert_allclose(run(p, a, b)[0], a * b + a + b)
    np.testing.assert_allclose(run(inner, b, a, a)[0], a * b + a + b)


def test_a_stage_without_parent_captures_nothing():
    def outer(x):
        staged(lambda z: [z * x], [V])
        return [x]

    with pytest.raises(UnexpectedTracerError, match=r"test_staging.py:\d+"):
        staged(outer, [V])


def test_values_of_a_sibling_are_refused():
    """A value of a stage that is neither around this one nor over is of no use here."""
    other = Stage()
    x = other.input(V)
    with pytest.raises(UnexpectedTracerError, match="below jit"):
        stage(lambda z: [z * x], [V])
    other.abandon()
    with pytest.raises(UnexpectedTracerError, match="outlived"):
        stage(lambda z: [z * x], [V])


def test_pruning():
    """Equations, constants and captured values that no result needs go; inputs stay."""
    a = f64(X)
    full = staged(lambda x, y: [x + x, (y * a) * 0.0][:1], [V, V])
    lean = staged(lambda x, y: [x + x, (y * a) * 0.0][:1], [V, V], prune=True)
    assert len(full.eqns) == 3 and len(full.consts) == 1
    assert names(lean) == ["core.add"] and lean.consts == [] and len(lean.inputs) == 2

    def outer(x):
        p, captured = stage(lambda z: [z + z, z * x][:1], [V], prune=True)
        assert captured == [] and len(p.inputs) == 1
        p, captured = stage(lambda z: [z + z, z * x][:1], [V])
        assert captured == [x] and len(p.inputs) == 2
        return [x]

    staged(outer, [V])


def test_a_stage_is_closed_however_it_ends():
    """Afterwards its values have escaped, the ground is current, and the collector as it was."""
    kept = []

    def fails(x):
        kept.append(x)
        assert not gc.isenabled()
        raise ZeroDivisionError

    for run_ in (lambda: staged(fails, [V]), lambda: stage(fails, [V])):
        with pytest.raises(ZeroDivisionError):
            run_()
        assert ext.current().parent is None and gc.isenabled()
        with pytest.raises(UnexpectedTracerError):
            kept.pop() + 1.0
    staged(lambda x: [kept.append(x) or x], [V])
    with pytest.raises(UnexpectedTracerError):
        kept[0] + 1.0
    gc.disable()
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_recording_after_the_end():
    s = Stage()
    x = s.input(V)
    s.close([x])
    for prim, args in ((sin, [x]), (add, [x, x])):
        with pytest.raises(UnexpectedTracerError):
            s.apply(prim, args, {})
    with pytest.raises(UnexpectedTracerError):
        s.apply(ext.Primitive("core_staging.nullary", lambda: V), [], {})


def test_types_are_known_with_and_without_the_memo():
    """The first equation of a type asks the type rule, the next take what it said; of one
    operand, of two and of three."""
    asked = []
    rule = lambda *xs: asked.append(xs) or xs[0].with_shape((len(xs),))  # noqa: E731
    p = ext.Primitive("core_staging.several", rule)

    def f(x):
        outs = [p.bind(*[x] * n) for n in (1, 2, 3, 1, 2, 3)]
        assert [o.shape for o in outs] == [(1,), (2,), (3,)] * 2
        return outs

    program = staged(f, [V])
    assert len(asked) == 3 and [o.aval.shape for o in program.outputs] == [(1,), (2,), (3,)] * 2
    many = ext.Primitive("core_staging.many", lambda x: [x, x], many=True)
    q = staged(lambda x: [*many.bind(x), *many.bind(x)], [V])
    assert [len(e.outputs) for e in q.eqns] == [2, 2] and len(set(q.outputs)) == 4


def test_a_type_rule_that_refuses_records_nothing():
    s = Stage()
    x, y = s.input(V), s.input(ext.Aval((2,), np.float64))
    with pytest.raises(PlaitError):
        s.apply(mul, [x, y], {})
    assert s.eqns == []


def test_lines():
    """Each equation has the line of the test; what is evaluated keeps the lines it has."""

    def f(x):
        y = lax.sin(x)
        return [y * x]

    p = staged(f, [V])
    first = f.__code__.co_firstlineno
    lines = [ext.errors.user_frames(e.where, 1)[0].line for e in p.eqns]
    assert lines == [first + 1, first + 2]
    again = staged(lambda x: ext.evaluate(p, [x]), [V])
    assert [e.where for e in again.eqns] == [e.where for e in p.eqns]


# ---- what is live ------------------------------------------------------------------------------


acts = ext.Primitive(
    "core_staging.acts", lambda x: x, effect=lambda params: ext.Effect("core_staging", True)
)
loud = ext.Primitive(
    "core_staging.loud",
    lambda x, *, on: x,
    effect=lambda params: ext.Effect("loud") if params["on"] else None,
)


def test_what_matters():
    """To results, or to the world: alone and in sub-programs; other equations go."""

    def f(x):
        y = lax.sin(x)
        lax.cos(y)
        acts.bind(x)
        loud.bind(x, on=True)
        loud.bind(x, on=False)
        return [y + 1.0]

    p = staged(f, [V])
    kept = [e.prim.name for e in live_equations(p.eqns, p.outputs)]
    assert kept == ["core.sin", "core_staging.acts", "core_staging.loud", "core.add"]
    assert p.effects == {ext.Effect("core_staging", True), ext.Effect("loud")}
    inner = staged(lambda x: [acts.bind(x)], [V])
    call = ext.ops.control_flow.call
    q = staged(lambda x: [call.bind(x, program=inner)[0], x][1:], [V])
    assert len(live_equations(q.eqns, q.outputs)) == 1
    assert q.effects == {ext.Effect("core_staging", True)}
    assert ordered([p, q, inner]) == (ext.Effect("core_staging", True),)
    quiet = staged(lambda x: [x * 2.0], [V])
    r = staged(lambda x: [call.bind(x, program=quiet)[0], x][1:], [V])
    assert live_equations(r.eqns, r.outputs) == [] and r.effects == frozenset()


def test_many_results_of_which_one_is_used():
    p = ext.Primitive("core_staging.pair", lambda x: [x, x], many=True)
    q = staged(lambda x: [p.bind(x)[1]], [V])
    (e,) = live_equations(q.eqns, q.outputs)
    assert e.outputs[1] is q.outputs[0]


def test_axes_that_are_spoken_of():
    """Of a primitive, of sub-programs, and not those that an operation binds."""
    speaks = ext.Primitive(
        "core_staging.speaks", lambda x, *, name: x, ambient=lambda params: (params["name"],)
    )

    class Binds(ext.Wiring):
        def binds(self, params):
            return frozenset({"i"})

    rule = lambda *xs, program: program.out_avals  # noqa: E731
    binds = ext.Primitive("core_staging.binds", rule, many=True, higher=Binds())
    p = staged(lambda x: [speaks.bind(speaks.bind(x, name="i"), name="j")], [V])
    assert p.axes == {"i", "j"}
    call = ext.ops.control_flow.call
    assert staged(lambda x: call.bind(x, program=p), [V]).axes == {"i", "j"}
    assert staged(lambda x: binds.bind(x, program=p), [V]).axes == {"j"}


def test_sub_programs_and_sizes():
    """Programs among parameters, in tuples too; variables of sizes wherever they are."""
    p, q = staged(lambda x: [x], [V]), staged(lambda x: [x + x], [V])
    assert programs_in({"a": p, "b": (q, 1, p), "c": [q], "d": 3}) == [p, q, p]
    n, m = plait.symbolic_dims("n, m")
    aval = ext.Aval((n, 3), np.float64)
    assert dims_of([aval, (m + 1, 2), 5, "x"]) == {"n", "m"}
    r = staged(lambda x: [x * 2.0], [aval])
    assert r.dims == {"n"} and dims_of([r, [m]]) == {"n", "m"} and p.dims == frozenset()


def test_inputs_in_another_order():
    p = staged(lambda x, y: [x * 2.0 + y], [V, V])
    turned = p.with_inputs(p.inputs[::-1])
    np.testing.assert_allclose(run(turned, X, X + 1)[0], (X + 1) * 2 + X)
    assert turned.name == p.name and turned.eqns is p.eqns
    with pytest.raises(ValueError):
        ext.evaluate(p, [f64(X)])


# ---- what is kept on programs -------------------------------------------------------------------


def test_what_is_derived_is_made_once():
    """By key, and by the identity of the other programs it was made of, which it does not hold."""
    p, q, r = (staged(lambda x: [x], [V]) for _ in range(3))
    made = []
    make = lambda: made.append(None) or len(made)  # noqa: E731
    assert [derived(p, k, make) for k in ("a", "a", "b", "a")] == [1, 1, 2, 1]
    assert derived(q, "a", make) == 3
    assert [derived(p, "a", make, [o]) for o in (q, q, r, q)] == [4, 4, 5, 4]
    assert derived(p, "a", make, [q, r]) == 6 and derived(p, "a", make, [r, q]) == 7
    count = len(p.derivations)
    gone = weakref.ref(r)
    del r
    gc.collect()
    assert gone() is None and len(p.derivations) == count - 3
    with pytest.raises(ZeroDivisionError):
        derived(p, "bad", lambda: 1 / 0)
    assert derived(p, "bad", lambda: "mended") == "mended"


def test_rules_that_are_staged_late():
    """A thunk makes its program when it is first asked, once; a failure may be tried again."""
    made = []

    def make():
        made.append(None)
        if len(made) == 1:
            raise ZeroDivisionError
        return staged(lambda x: [x], [V])

    thunk = Thunk(make)
    assert repr(thunk) == "<rule>" and not made
    with pytest.raises(ZeroDivisionError):
        thunk.get()
    assert thunk.get() is thunk.get() and len(made) == 2


# ---- what is checked -----------------------------------------------------------------------------


@pytest.mark.feature("C09")
def test_programs_that_are_not_well_formed():
    """Every kind of defect is named; a program that is right passes, and nothing is computed."""
    p = staged(lambda x, y: [lax.sin(x) * y], [V, V])
    assert check(p) is p
    x, y = p.inputs
    other = staged(lambda x: [x], [ext.Aval((2,), np.float64)]).inputs[0]
    sine, product = p.eqns
    a = f64(X[:2])
    wrong = {
        "there twice": Program([x, x], p.eqns, p.outputs),
        "which nothing defines": Program([x], p.eqns, p.outputs),
        "sin at .* reads": Program([y], p.eqns, p.outputs),
        "the result reads": Program([x, y], p.eqns[:1], p.outputs),
        "mul at .* reads": Program([x, y], p.eqns[::-1], p.outputs),
        "constant .* stands for": Program([y], p.eqns, p.outputs, consts=[(x, a)]),
        "not an atom": Program([x, y], p.eqns, [f64(X)]),
        "its type rule says": Program(
            [x, y, other],
            [sine, Eqn(mul, [sine.outputs[0], y], [other.by.var(other.aval)], {}, product.where)],
            [x],
        ),
    }
    for text, program in wrong.items():
        with pytest.raises(ProgramError, match=text):
            check(program)
    call = ext.ops.control_flow.call
    outer = staged(lambda x, y: call.bind(x, y, program=p), [V, V])
    check(outer)
    outer.eqns[0].params["program"] = wrong["the result reads"]
    with pytest.raises(ProgramError, match="the result reads"):
        check(outer)


X_OF = V.with_vma(frozenset("x"))


def recorded(prim, avals, params, outs):
    """A program of one equation, as nothing would record it."""
    inputs = staged(lambda *xs: [], avals).inputs
    variables = [inputs[0].by.var(a) if inputs else None for a in outs]
    return Program(inputs, [Eqn(prim, inputs, variables, params, None)], variables)


def summed(x):
    return ext.ops.collective.psum_.bind(x, axes=("x",))


def test_programs_that_vary_otherwise_than_their_operation():
    """Along which axes of a mesh a value varies is part of its type, at every end of a slot."""
    control = ext.ops.control_flow
    same, more = staged(lambda c: [c * 2], [V]), staged(lambda c: [c * 2], [X_OF])
    grown = staged(lambda c, x: [c + x], [V, X_OF])
    total = staged(lambda c: [summed(c)], [X_OF])
    index = ext.Aval((), np.int32)
    turns = {"length": 3, "reverse": False, "unroll": 1, "consts": 0, "carry": 1}
    rows = X_OF.with_shape((3, *V.shape))
    wrong = {
        "type rule says": recorded(mul, [V, X_OF], {}, [V]),
        "operand .* enters": recorded(control.call, [X_OF], {"program": same}, [X_OF]),
        "slot 0 is": recorded(control.scan, [V, rows], {"body": grown, **turns}, [X_OF]),
        "slot 2 is": recorded(control.cond, [index, X_OF], {"branches": (more, total)}, [X_OF]),
        "what decides": recorded(
            control.cond, [index.with_vma(frozenset("x")), V], {"branches": (same, same)}, [X_OF]
        ),
    }  # fmt: skip
    for text, program in wrong.items():
        with pytest.raises(ProgramError, match=text):
            check(program)


def test_what_is_recorded_conforms():
    """Programs that were made for operands that vary less are staged again on those that there are,
    and operands that vary less than the others are made to vary."""
    control = ext.ops.control_flow
    grown = staged(lambda c, x: [c + x], [V, X_OF])
    turns = {"length": 3, "reverse": False, "unroll": 1, "consts": 0, "carry": 1}
    rows = X_OF.with_shape((3, *V.shape))
    loop = check(staged(lambda c, xs: control.scan.bind(c, xs, body=grown, **turns), [V, rows]))
    assert [e.prim.name for e in loop.eqns] == ["core.pvary", "core.scan"]
    assert loop.out_avals == [X_OF] and loop.eqns[1].params["body"].in_avals == [X_OF, X_OF]

    same = staged(lambda c: [c * 2], [V])
    index = ext.Aval((), np.int32, False).with_vma(frozenset("x"))
    branches = {"branches": (same, same)}
    choice = check(staged(lambda i, c: control.cond.bind(i, c, **branches), [index, V]))
    assert choice.out_avals == [X_OF]
    # what is summed over devices on the way stays the same on all
    total = staged(lambda c: [summed(c)], [V])
    called = check(staged(lambda c: control.call.bind(c, program=total), [X_OF]))
    assert called.out_avals == [V] and called.eqns[0].params["program"].in_avals == [X_OF]


def test_the_setting_checks():
    """With it every program is checked when its stage closes."""
    shifty = ext.Primitive("core_staging.shifty", lambda x: next(answers), effect=lambda p: None)
    answers = iter([V, ext.Aval((2,), np.float64)] * 2)
    with plait.config(checks=False):
        staged(lambda x: [shifty.bind(x)], [V])
    answers = iter([V, ext.Aval((2,), np.float64)])
    with plait.config(checks=True), pytest.raises(ProgramError, match="its type rule says"):
        staged(lambda x: [shifty.bind(x)], [V])
