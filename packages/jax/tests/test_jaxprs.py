"""Programs as JAX's code reads them: walked, counted, inverted, changed and evaluated.

Invariant: the interpreters here are written as libraries write them, with names of JAX alone; their
results are compared with numpy and with counts made by hand.
"""

import functools
import math
import weakref

import numpy as np
import pytest

import plait


@pytest.fixture
def core(jax):
    """The module with the classes of programs."""
    return jax.extend.core


def flops(jaxpr, core):
    """How many multiplications of contractions a program does."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contract, _), _ = eqn.params["dimension_numbers"]
            inner = math.prod(eqn.invars[0].aval.shape[i] for i in contract)
            total += inner * math.prod(eqn.outvars[0].aval.shape)
        times = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        for value in eqn.params.values():
            for v in value if isinstance(value, tuple) else (value,):
                if isinstance(v, core.ClosedJaxpr):
                    total += times * flops(v.jaxpr, core)
    return total


def test_an_interpreter_that_counts(jax, core):
    def f(a, b):
        c = jax.jit(lambda x: x @ b)(a)
        out, _ = jax.lax.scan(lambda s, _: (s @ b, None), c, None, length=5)
        return jax.lax.cond(out.sum() > 0, lambda v: v @ v.T, lambda v: v @ v.T, out)

    closed = jax.make_jaxpr(f)(np.ones((2, 3), "float32"), np.ones((3, 3), "float32"))
    assert flops(closed.jaxpr, core) == 2 * 3 * 3 * (1 + 5) + 2 * (2 * 2 * 3)


def inverse(jax, core, fun):
    """The inverse of a function of one number, by walking its program backwards."""
    lax, jnp = jax.lax, jax.numpy
    undo = {
        lax.exp_p: jnp.log,
        lax.tanh_p: jnp.arctanh,
        core.primitives.neg_p: jnp.negative,
    }

    def back(y):
        closed = jax.make_jaxpr(fun)(0.5)
        env = {closed.jaxpr.outvars[0]: y}
        env |= dict(zip(closed.jaxpr.constvars, closed.consts))
        for eqn in reversed(closed.jaxpr.eqns):
            (out,) = eqn.outvars
            if eqn.primitive in undo:
                env[eqn.invars[0]] = undo[eqn.primitive](env[out])
                continue
            x, known = eqn.invars
            value = known.val if isinstance(known, core.Literal) else env[known]
            assert eqn.primitive is lax.mul_p or eqn.primitive is lax.add_p
            env[x] = env[out] / value if eqn.primitive is lax.mul_p else env[out] - value
        return env[closed.jaxpr.invars[0]]

    return back


def test_an_interpreter_that_inverts(jax, core):
    f = lambda x: jax.numpy.exp(jax.numpy.tanh(x * 0.5) + 1.0)
    back = inverse(jax, core, f)
    for x in (-0.7, 0.1, 1.3):
        np.testing.assert_allclose(back(np.exp(np.tanh(x * 0.5) + 1.0)), x, rtol=1e-4)
        np.testing.assert_allclose(jax.jit(back)(f(x)), x, rtol=1e-4)


def run_by_equations(core, jaxpr, consts, *args):
    """A program applied equation by equation, as JAX's own evaluation is written."""
    env = {}
    env.update(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    read = lambda v: v.val if isinstance(v, core.Literal) else env[v]
    for eqn in jaxpr.eqns:
        functions, params = eqn.primitive.get_bind_params(eqn.params)
        out = eqn.primitive.bind(*functions, *map(read, eqn.invars), **params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
    return [read(v) for v in jaxpr.outvars]


TABLE = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)

FUNCTIONS = {
    "constants": lambda jax: (
        lambda x: jax.numpy.asarray(TABLE) @ x + 2,
        lambda x: TABLE @ x + 2,
    ),
    "choice": lambda jax: (
        lambda x: jax.numpy.where(x > 0, x, -1.0)[::-1],
        lambda x: np.where(x > 0, x, -1.0)[::-1],
    ),
    "positions": lambda jax: (
        lambda x: jax.numpy.argmax(jax.numpy.pad(x, 1)) + jax.numpy.argmin(x),
        lambda x: np.argmax(np.pad(x, 1)) + np.argmin(x),
    ),
    "loop": lambda jax: (
        lambda x: jax.lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2 + 1, x),
        lambda x: (x * 2 + 1) * 2 + 1 if (x * 2 + 1).sum() < 9 else x * 2 + 1,
    ),
    "steps": lambda jax: (
        lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), 0.0, x)[1],
        lambda x: np.concatenate([[0], np.cumsum(x)[:-1]]) * x,
    ),
    "branches": lambda jax: (
        lambda x: jax.lax.switch(1, [jax.numpy.cos, jax.numpy.sin], x),
        lambda x: np.sin(x),
    ),
    "calls": lambda jax: (
        lambda x: jax.jit(lambda v: jax.jit(jax.numpy.exp)(v) * v)(x),
        lambda x: np.exp(x) * x,
    ),
    "order": lambda jax: (
        lambda x: jax.numpy.sort(x)[1:].astype("int32"),
        lambda x: np.sort(x)[1:].astype("int32"),
    ),
}
X = np.array([0.5, -1.25, 2.5], "float32")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_is_evaluated(jax, core, name):
    f, g = FUNCTIONS[name](jax)
    closed = jax.make_jaxpr(f)(X)
    assert len(closed.consts) == len(closed.jaxpr.constvars)
    assert [a.shape for a in closed.in_avals] == [(3,)]
    assert [a.shape for a in closed.out_avals] == [np.shape(g(X))]
    by_equations = lambda x: run_by_equations(core, closed.jaxpr, closed.consts, x)
    again = closed.jaxpr.replace(eqns=[e.replace() for e in closed.jaxpr.eqns])
    ways = [
        lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x),
        lambda x: jax.core.eval_jaxpr(again, closed.consts, x),
        core.jaxpr_as_fun(closed),
        by_equations,
        jax.jit(by_equations),
    ]
    for way in ways:
        (got,) = way(jax.numpy.asarray(X))
        np.testing.assert_allclose(got, g(X), rtol=1e-5, atol=1e-6)


def test_constants_may_be_others(jax):
    big = jax.numpy.asarray(TABLE)
    closed = jax.make_jaxpr(lambda x: big @ x)(X)
    (got,) = jax.core.eval_jaxpr(closed.jaxpr, [2 * TABLE], X)
    np.testing.assert_allclose(got, 2 * TABLE @ X, rtol=1e-6)


def test_an_equation_may_be_replaced(jax, core):
    closed = jax.make_jaxpr(lambda x: jax.numpy.sin(x) + 1.0)(X)
    first, *rest = closed.eqns
    cos = first.replace(primitive=jax.lax.cos_p)
    changed = closed.replace(jaxpr=closed.jaxpr.replace(eqns=[cos, *rest]))
    (got,) = core.jaxpr_as_fun(changed)(X)
    np.testing.assert_allclose(got, np.cos(X) + 1, rtol=1e-6)


def test_a_changed_program_goes_back_into_an_operation(jax, core):
    def f(x):
        return jax.lax.scan(lambda c, _: (jax.numpy.sin(c), None), x, None, length=3)[0]

    closed = jax.make_jaxpr(f)(X)
    (scan,) = [e for e in closed.eqns if e.primitive.name == "scan"]
    body = scan.params["jaxpr"]
    (sin,) = body.eqns
    body = body.replace(jaxpr=body.jaxpr.replace(eqns=[sin.replace(primitive=jax.lax.cos_p)]))
    out = scan.primitive.bind(X, **{**scan.params, "jaxpr": body})
    np.testing.assert_allclose(out[0], np.cos(np.cos(np.cos(X))), rtol=1e-6)


def test_what_is_closed_over_is_a_constant(jax):
    def f(x):
        closed = jax.make_jaxpr(lambda y: x * y)(2.0)
        assert len(closed.consts) == 1
        (out,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
        return out

    assert float(jax.jit(f)(5.0)) == 15.0


def test_types_and_shapes(jax, core):
    closed, shape = jax.make_jaxpr(lambda x, n: {"a": x * n}, static_argnums=1, return_shape=True)(
        X, 2
    )
    assert shape["a"].shape == (3,)
    assert all(isinstance(v, core.Var) for v in closed.jaxpr.invars)
    assert isinstance(closed.jaxpr, core.Jaxpr) and isinstance(closed, core.ClosedJaxpr)
    assert isinstance(closed.eqns[0], core.JaxprEqn) and not isinstance(X, core.Var)
    assert isinstance(closed.in_avals[0], jax.core.ShapedArray)
    assert closed.jaxpr.effects == frozenset()
    assert str(closed) == str(closed.jaxpr) and "core.mul" in str(closed)
    fresh = core.Var(jax.core.ShapedArray((2,), "float32"))
    assert isinstance(fresh, core.Var) and fresh.aval.shape == (2,)


def test_programs_in_equations_are_found(jax):
    closed = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, jax.numpy.sin, jax.numpy.cos, x))(1.0)
    inner = list(jax.core.subjaxprs(closed.jaxpr))
    assert sorted(e.primitive.name for j in inner for e in j.eqns) == ["cos", "sin"]


def test_rows_and_stacks(jax, core):
    aval = jax.core.ShapedArray((2, 3), "float32")
    assert core.mapped_aval(3, 1, aval).shape == (2,)
    assert core.unmapped_aval(5, 1, aval).shape == (2, 5, 3)
    assert core.mapped_aval(3, None, aval) is aval
    assert jax.core.trace_state_clean()
    seen = []
    jax.jit(lambda x: seen.append(jax.core.trace_state_clean()) or x)(1.0)
    assert seen == [False]
    assert jax.core.valid_jaxtype(1.0) and not jax.core.valid_jaxtype("text")


def test_variables_are_of_the_class_by_which_code_compares_them(jax, core):
    eqn = jax.make_jaxpr(lambda x: 2.0 * x)(X).eqns[0]
    assert tuple(map(type, eqn.invars)) == (core.Literal, core.Var)
    assert type(eqn.invars[1]) == core.Var and core.Var == type(eqn.invars[1])  # noqa: E721
    assert type(eqn.invars[0]) != core.Var and core.Var != core.Literal  # noqa: E721
    assert {core.Var: "found"}[type(eqn.outvars[0])] == "found"


def test_values_of_rules_that_are_staged_alone_are_compared_by_elements(jax):
    """With jax imported: `==` is by identity only for variables of programs that are complete."""
    from plait.ext.ir import Primitive, evaluate
    from plait.ext.rules import expand_rules
    from plait.ext.trace import staged

    x, y = np.arange(4.0, dtype="float32"), np.array([0, 9, 2, 9], "float32")
    aval = plait.numpy.asarray(x).aval
    program = staged(lambda a, b: [a == b, a != b], (aval, aval))
    same, differ = evaluate(program, [plait.numpy.asarray(x), plait.numpy.asarray(y)])
    np.testing.assert_array_equal(same, x == y)
    np.testing.assert_array_equal(differ, x != y)
    equal = Primitive("compared.equal", lambda a, b: a.update(dtype=np.dtype(bool)))
    expand_rules.rule(equal)(lambda a, b: a == b)
    for f in (equal.bind, plait.jit(lambda a, b: equal.bind(*map(plait.numpy.asarray, (a, b))))):
        np.testing.assert_array_equal(f(plait.numpy.asarray(x), plait.numpy.asarray(y)), x == y)


def test_operands_without_axes_are_as_many_as_the_others(jax):
    lax, x = jax.lax, np.arange(1.0, 4.0, dtype="float32")
    for got, want in (
        (lax.mul_p.bind(x, 2.0), x * 2),
        (lax.pow_p.bind(x, 0.5), x**0.5),
        (lax.sub_p.bind(1.0, x), 1 - x),
        (lax.div_p.bind(jax.numpy.float32(6), x), 6 / x),
        (jax.jit(lambda y: lax.add_p.bind(x, y))(np.float32(2)), x + 2),
        (lax.max_p.bind(np.array([1, 5], "int32"), 3), [3, 5]),
        (lax.mul_p.bind(2.0, 3.0), 6),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(TypeError, match="one shape"):
        lax.add_p.bind(x, np.ones(2, "float32"))
    with pytest.raises(TypeError):
        lax.add_p.bind(x, jax.numpy.int32(2))


def test_constants_in_programs_can_be_referred_to_weakly(jax):
    seen = []

    def f(x):
        y = jax.numpy.full(x.shape, 2.0)
        seen.append(weakref.ref(y)() is y)
        return x * y

    jax.jit(f)(X)
    assert seen == [True]


def depends(jaxpr, core):
    """Whether a result is computed from an input, as libraries ask: equation by equation."""
    moved = set(jaxpr.invars)
    for eqn in jaxpr.eqns:
        if any(isinstance(v, core.Var) and v in moved for v in eqn.invars):
            moved.update(eqn.outvars)
    return any(isinstance(v, core.Var) and v in moved for v in jaxpr.outvars)


def test_operations_on_every_row_are_operations_on_arrays(jax, core):
    """Jacobians and `lax.map` are made of what JAX has: of an affine function the Jacobian does not
    depend on where it is taken, and its program says so."""
    pytest.importorskip("plait_autodiff")
    jnp, x = jax.numpy, np.arange(3, dtype="float32")
    for take in (jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f))):
        for f in (lambda v: 2 * v + 1, lambda v: v * v * v):
            closed = jax.make_jaxpr(take(f))(x)
            assert not [e for e in closed.eqns if "map" in e.primitive.name]
            (got,) = core.jaxpr_as_fun(closed)(x)
            np.testing.assert_allclose(got, take(f)(jnp.asarray(x)))
        assert not depends(jax.make_jaxpr(take(lambda v: 2 * v + 1))(x).jaxpr, core)
        assert depends(jax.make_jaxpr(take(lambda v: v * v * v))(x).jaxpr, core)


def test_a_map_inside_of_a_loop_is_a_loop(jax, core):
    def f(x):
        return jax.lax.scan(lambda c, _: (jax.lax.map(lambda v: v * 2, c), None), x, None, 2)[0]

    closed = jax.make_jaxpr(f)(np.ones(3, "float32"))
    (loop,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "scan"]
    assert not [e for e in loop.params["jaxpr"].eqns if "map" in e.primitive.name]
    np.testing.assert_array_equal(core.jaxpr_as_fun(closed)(np.ones(3, "float32"))[0], [4.0] * 3)
    np.testing.assert_array_equal(
        jax.core.eval_jaxpr(closed.jaxpr, closed.consts, np.ones(3, "float32"))[0], [4.0] * 3
    )


# ---- what libraries read ---------------------------------------------------------------------


def scaled(x, params, *, power=2):
    with plait.named_scope("outer"), plait.named_scope("inner"):
        y = x * params["w"]
    return {"y": y**power}


def test_a_closed_jaxpr_has_the_parts_of_its_jaxpr(jax):
    closed = jax.make_jaxpr(scaled)(np.ones(3, "float32"), {"w": np.float32(2)})
    jaxpr = closed.jaxpr
    for name in ("invars", "outvars", "constvars", "eqns", "effects", "debug_info", "in_avals",
                 "out_avals"):  # fmt: skip
        assert getattr(closed, name) == getattr(jaxpr, name), name
    assert closed.pretty_print() == str(closed) == str(jaxpr) and "mul" in str(closed)
    assert closed.is_high is jaxpr.is_high is False
    (got,) = jax.core.eval_jaxpr(closed, [], np.full(3, 3, "float32"), np.float32(2))
    np.testing.assert_array_equal(got, [36, 36, 36])


def test_an_equation_has_its_place(jax):
    closed = jax.make_jaxpr(scaled)(np.ones(3, "float32"), {"w": np.float32(2)})
    first = next(e for e in closed.eqns if e.primitive is jax.lax.mul_p)
    last = closed.eqns[-1]
    assert first.source_info.name_stack.stack == ("outer", "inner")
    assert str(first.source_info.name_stack) == "outer/inner"
    assert str(last.source_info.name_stack) == "" and last.source_info.name_stack.stack == ()
    info = jax.extend.source_info_util
    frame = info.user_frame(last.source_info.traceback)
    line = scaled.__code__.co_firstlineno + 3
    assert (frame.file, frame.line) == (__file__, line)
    assert info.summarize(last.source_info) == f"{__file__}:{line} (scaled)"
    moved = first.replace(source_info=last.source_info)
    assert moved.source_info == last.source_info and moved.params == first.params


def test_names_of_arguments_and_results(jax):
    info = jax.make_jaxpr(scaled)(np.ones(3, "float32"), {"w": np.float32(2)}).jaxpr.debug_info
    assert info.arg_names == ("x", "params['w']") and info.result_paths == ("result['y']",)
    assert info.func_name == "scaled" and __file__ in info.func_src_info
    assert info.safe_arg_names(2) == info.arg_names and info.safe_arg_names(3) == ("", "", "")
    inner = jax.make_jaxpr(jax.jit(scaled))(np.ones(3, "float32"), {"w": np.float32(2)}).eqns[0]
    assert inner.params["jaxpr"].jaxpr.debug_info.safe_result_paths(1) == ("",)


def test_effects_are_those_of_the_equation(jax):
    def f(x):
        jax.debug.print("{}", x)
        return jax.numpy.sin(x)

    closed = jax.make_jaxpr(f)(1.0)
    acting = [e for e in closed.eqns if e.effects]
    assert len(acting) == 1 and acting[0].effects == closed.effects
    called = jax.make_jaxpr(jax.jit(f))(1.0)
    assert called.eqns[0].effects == called.effects == closed.effects


def test_a_call_has_jaxs_parameters(jax):
    eqn = jax.make_jaxpr(jax.jit(scaled))(np.ones(3, "float32"), {"w": np.float32(2)}).eqns[0]
    assert set(eqn.params) == {
        "jaxpr", "in_shardings", "out_shardings", "in_layouts", "out_layouts", "donated_invars",
        "ctx_mesh", "name", "keep_unused", "inline", "compiler_options_kvs",
    }  # fmt: skip
    assert eqn.params["name"] == "scaled" and eqn.params["donated_invars"] == (False, False)
    (got,) = eqn.primitive.bind(np.ones(3, "float32"), np.float32(3), **eqn.params)
    np.testing.assert_array_equal(got, [9, 9, 9])


def test_variables_are_compared_by_identity(jax, core):
    def f(x, y):
        return jax.jit(jax.numpy.sin)(x) * y, y

    program = jax.make_jaxpr(f)(1.0, 2.0).jaxpr
    x, y = program.invars
    inner = program.eqns[0].params["jaxpr"].jaxpr.invars[0]
    assert x == x and x != y and x != inner
    assert (x != x) is (x == y) is False
    assert [v == y for v in program.eqns[-1].invars] == [False, True]
    assert program.outvars.index(y) == 1 and x not in program.outvars
    made = core.Var(x.aval)
    assert made == made and made != x
    assert jax.jit(lambda x, y: (x == y, x != y))(1.0, 2.0) == (False, True)


def test_values_that_outlived_their_function_are_not_compared(jax):
    kept = []
    jax.jit(lambda x: kept.append(x))(1.0)
    with pytest.raises(plait.errors.UnexpectedTracerError):
        kept[0] == 1.0  # noqa: B015


def test_a_function_that_makes_jaxprs_has_a_name(jax):
    def twice(x):
        return 2 * x

    made = jax.make_jaxpr(twice)
    assert made.__name__ == "make_jaxpr(twice)" and made.__module__ == "jax"
    assert made.__qualname__ == f"make_jaxpr({twice.__qualname__})"
    assert len(jax.make_jaxpr(functools.partial(twice))(1.0).eqns) == 1
