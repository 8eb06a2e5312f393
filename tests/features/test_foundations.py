"""What everything rests on: what values are, what caches hold, what messages say.

Invariant: each test would fail if one promised behaviour broke, and names no internals that a
user of `plait.ext` does not meet.
"""

import inspect
import os
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._base.source import hidden
from plait._core.check import check
from plait.events import counting
from plait.ext.errors import here, hide, user_frames, user_line
from plait.ext.ops.elementwise import add
from plait.ext.rules import eager_rules, lower_rules

pnp = plait.numpy
X = np.arange(3, dtype=np.float32)


# ---- where something happened ----------------------------------------------------------------


@pytest.mark.feature("C03")
def test_whose_frames_are_shown(tmp_path):
    ours = os.path.dirname(plait.__file__)
    assert hidden(os.path.join(ours, "values.py")) and not hidden(ours + "_user/values.py")
    hide(str(tmp_path / "lib"))
    beside = tmp_path / "lib_of_a_user" / "model.py"
    beside.parent.mkdir()
    beside.write_text("def where(f):\n    return f()\n")
    scope: dict = {}
    exec(compile(beside.read_text(), str(beside), "exec"), scope)
    token = scope["where"](here)
    assert user_line(token) == f"{beside}:2"
    assert user_frames(token, 0) == []
    assert [f.file for f in user_frames(token, 2)] == [str(beside), __file__]
    inside = tmp_path / "lib" / "model.py"
    exec(compile(beside.read_text(), str(inside), "exec"), scope)
    assert user_line(scope["where"](here)).startswith(__file__)


# ---- what is taken for an array --------------------------------------------------------------


class Wrapped:
    def __init__(self, data):
        self.data = data

    def __jax_array__(self):
        return pnp.asarray(self.data)


class Ours(Wrapped):
    def __plait_array__(self):
        return pnp.asarray(self.data)

    def __jax_array__(self):
        raise AssertionError("the other is asked first")


@pytest.mark.feature("C04")
@pytest.mark.parametrize("kind", [Wrapped, Ours])
def test_objects_that_say_what_array_they_are(kind):
    x = kind(X)
    mesh = plait.make_mesh((3,), "i")
    over = lambda f: plait.shard_map(f, mesh=mesh, in_specs=plait.P("i"), out_specs=plait.P("i"))  # noqa: E731
    for wrap in (
        lambda f: f,
        plait.jit,
        plait.vmap,
        plait.pmap,
        over,
        lambda f: plait.jit(plait.vmap(f)),
    ):
        np.testing.assert_allclose(wrap(pnp.sin)(x), np.sin(X), rtol=1e-6)
    for g in (
        plait.grad(lambda x: pnp.sin(x).sum()),
        plait.grad(plait.jit(lambda x: pnp.sin(x).sum())),
    ):
        np.testing.assert_allclose(g(x), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(pnp.ones(3) + x, X + 1)


@pytest.mark.feature("C07")
@pytest.mark.parametrize("checks", [False, True])
def test_operands_must_be_arrays(checks):
    calls = (
        lambda: add.bind((pnp.ones(2), pnp.ones(2)), 1),
        lambda: add((X, X), 1),
        lambda: plait.jit(lambda x: add.bind((x, x), 1))(X),
        lambda: plait.vmap(lambda x: add.bind((x, x), 1))(X),
        lambda: plait.grad(lambda x: add.bind((x, x), 1.0))(1.0),
    )
    with plait.config(checks=checks):
        for call in calls:
            text = r"^Argument \(.* of type tuple is not an array"
            with pytest.raises(TypeError, match=text) as e:
                call()
            assert __file__ in e.value.where


@pytest.mark.feature("C08")
def test_nothing_traced_is_dropped_silently():
    """What ties values together keeps all of a tree, or refuses it."""
    program = plait.make_program(lambda x: lax.optimization_barrier(((x, x * 2), 1.0))[0][0])(1.0)
    (e,) = [e for e in program.eqns if "barrier" in e.prim.name]
    assert len(e.inputs) == 3
    with pytest.raises(TypeError, match="of type object is not an array"):
        plait.make_program(lambda x: lax.optimization_barrier((x, object())))(1.0)


# ---- what caches hold ------------------------------------------------------------------------


@pytest.mark.feature("C06")
def test_functions_of_one_code_are_told_apart_by_all_they_are():
    def made(n):
        return lambda x, by=n: x * by

    f, g = made(2.0), made(3.0)
    assert f.__code__ is g.__code__
    for wrap in (plait.jit, plait.grad, plait.vmap, lambda f: plait.jit(plait.vmap(f))):
        x = 1.0 if wrap is plait.grad else X
        got = np.ravel(wrap(f)(x)), np.ravel(wrap(g)(x))
        np.testing.assert_array_equal(got[0] * 3, got[1] * 2)
    scope = {"k": 2.0}
    h = eval("lambda x: x * k", scope)
    assert plait.jit(h)(1.0).item() == 2
    same = eval("lambda x: x * k", {"k": 5.0})
    assert plait.jit(same)(1.0).item() == 5


@pytest.mark.feature("C06")
def test_a_transformed_function_is_compiled_once():
    mesh = plait.make_mesh((3,), "i")
    f = plait.jit(lambda x: pnp.sin(x * 1.25).sum())
    m = plait.jit(
        plait.shard_map(pnp.cos, mesh=mesh, in_specs=plait.P("i"), out_specs=plait.P("i"))
    )
    for run in (lambda: plait.grad(f)(X), lambda: plait.grad(lambda x: m(x).sum())(X)):
        run()
        with counting() as n:
            run(), run()
        assert not n["trace"] and not n["compile"], n


@pytest.mark.feature("C15")
def test_weak_types_of_shapes():
    with counting() as n:
        first = plait.eval_shape(pnp.array, 1)
        second = plait.eval_shape(pnp.array, 1)
    assert n["trace"] == 1 and first == second
    assert first.weak_type is True is pnp.array(1).weak_type
    f = plait.jit(lambda x: x * 2)
    shape = f.eval_shape(f.eval_shape(1))
    with counting() as n:
        assert f.eval_shape(shape) == shape and f(f(1)).weak_type
    assert n["trace"] == 0


@pytest.mark.feature("C17")
def test_types_of_traced_values_have_no_value():
    seen = []
    plait.jit(lambda x: (seen.append(x.aval), x * pnp.ones(3))[1])(X)
    assert type(seen[0]) is ext.Aval is type(pnp.asarray(X).aval)
    assert seen[0] is pnp.asarray(X * 2).aval  # the same for all values
    assert not any(hasattr(seen[0], name) for name in ("val", "value", "_value"))


# ---- checking --------------------------------------------------------------------------------


@pytest.mark.feature("C09")
def test_checking_a_program_computes_nothing():
    prim, runs = ext.Primitive("features.counted", lambda x: x), []
    lower_rules.rule(prim)(lambda e, xs, ins, outs: xs[0])
    eager_rules.rule(prim)(lambda args, params: runs.append(args) or args[0])
    prim(X)
    assert len(runs) == 1
    program = plait.make_program(lambda x: (prim(x) * 2.0 + 1, lax.cond(True, prim, prim, x)))(X)
    with counting() as n:
        check(program)
    assert len(runs) == 1 and not n
    with plait.config(checks=True), counting() as n:
        plait.make_program(lambda x: prim(x) * 2.0)(X)
    assert len(runs) == 1 and not n["compile"] + n["transfer"]


@pytest.mark.feature("C20")
def test_branches_have_no_parameter_of_derivatives():
    f = lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: x, x)  # noqa: E731
    (e,) = [e for e in plait.make_program(f)(True, X).eqns if e.prim.name == "core.cond"]
    assert list(e.params) == ["branches"]
    _, pull = plait.vjp(lambda x: f(True, x), X)
    np.testing.assert_array_equal(pull(X)[0], 2 * X)
    for wrong in (np.ones(4, np.float32), np.ones(3, np.int32), np.float32(1)):
        with pytest.raises(TypeError, match="cotangent"):
            pull(wrong)
    transposed = plait.linear_transpose(lambda x: f(True, x), X)
    with pytest.raises(TypeError, match="cotangent of another type: .*\\(3,\\)"):
        transposed(np.ones(4, np.float32))


# ---- how rules are called --------------------------------------------------------------------


@pytest.mark.feature("C21")
def test_lowering_rules_build_operations_themselves():
    """rule(e, xs, ins, outs, **params), and no class that mimics a builder."""
    lower_rules.find(ext.Primitive("features.none", lambda x: x))  # loads what is declared
    rules = [r for r in lower_rules._rules.values() if inspect.isfunction(r)]
    assert len(rules) > 100
    for rule in rules:
        kinds = [p.kind for p in inspect.signature(rule).parameters.values()]
        assert len(kinds) >= 4 and all(
            k in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
            for k in kinds[:4]
        ), rule
    root = Path(__file__).parents[2] / "packages"
    for path in root.glob("*/src/**/*.py"):
        text = path.read_text(encoding="utf-8")
        assert "class Computation" not in text and "ComputationBuilder" not in text, path
