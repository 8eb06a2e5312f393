"""Calling what was exported: at once, in traced functions, and with what does not fit."""

import threading

import numpy as np
import pytest

import plait
from plait import events, lax
from plait.ext.errors import DimMismatch, PlaitError, TreeMismatch, TypeRule, UndecidedDim
from plait.ext.ops import elementwise as el
from plait_export import (
    NotExportable,
    call_exported,
    container,
    deserialize,
    export,
    symbolic_args_specs,
)

F32 = np.float32
X = np.arange(6, dtype=F32).reshape(2, 3)


def f(x, y):
    return el.sin(x) * y.sum() + x.shape[0], y[:1]


def reference(x, y):
    return np.sin(x) * y.sum() + x.shape[0], y[:1]


STATIC = deserialize(export(f)(X, X[0]).serialize())
OPEN = deserialize(export(f)(*symbolic_args_specs((X, X[0]), ("b, 3", "b + c"))).serialize())


def check(got, want):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def given(b, c):
    rng = np.random.default_rng(b * 10 + c)
    return rng.normal(size=(b, 3)).astype(F32), rng.normal(size=b + c).astype(F32)


# ---- at once -------------------------------------------------------------------------------


def test_a_call_is_compiled_once_per_types():
    exported = deserialize(OPEN.serialize())
    with events.counting() as n:
        for _ in range(3):
            for b, c in ((1, 1), (4, 2)):
                check(exported.call(*given(b, c)), reference(*given(b, c)))
    assert n["compile"] == 2 and len(exported.compiled) == 2


def test_equal_code_is_compiled_once():
    a = export(lambda x: el.cos(x) - 0.25)(X)
    a.call(X)
    with events.counting() as n:
        deserialize(a.serialize()).call(X)
    assert n["compile"] == 0


def test_python_numbers_become_what_is_wanted():
    for like, number in ((np.float32(1), 2), (np.float64(1), 2.5), (np.int8(1), 3), (1.0, 2)):
        exported = export(lambda x: x * 2)(like)
        for call in (
            exported.call,
            plait.jit(lambda exported=exported, n=number: exported.call(n)),
        ):
            out = call(number) if call == exported.call else call()
            assert out.item() == 2 * number
            assert out.dtype == exported.out_avals[0].dtype


def test_results_keep_their_dtypes():
    x = np.ones((2, 2), np.float64)
    out = export(lambda x: (x, x.astype("bfloat16"), x > 0, x.astype("int8")))(x).call(x)
    assert [o.dtype.name for o in out] == ["float64", "bfloat16", "bool", "int8"]


def test_threads():
    exported, failures = deserialize(OPEN.serialize()), []

    def work(k):
        try:
            for b in range(1, 6):
                check(exported.call(*given(b, k)), reference(*given(b, k)))
                check(deserialize(OPEN.serialize()).call(*given(b, 1)), reference(*given(b, 1)))
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(1 + k % 2,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_empty_arrays_if_the_constraints_admit_them():
    types = symbolic_args_specs(X, "b, 3", ["b >= 0"])
    exported = deserialize(export(lambda x: (x.sum(0), x * x.shape[0]))(types).serialize())
    for b in (0, 1, 3):
        x = np.ones((b, 3), F32)
        check(exported.call(x), (x.sum(0), x * b))


# ---- in traced functions -------------------------------------------------------------------


@pytest.mark.parametrize("exported", [STATIC, OPEN], ids=["static", "open"])
def test_under_jit_it_is_one_operation(exported):
    x, y = X, X[0]
    g = lambda x, y: exported.call(x * 2, y)[0] + exported.call(x, y)[0]  # noqa: E731
    program = plait.make_program(g)(x, y)
    assert [e.prim for e in program.eqns].count(call_exported) == 2
    want = reference(x * 2, y)[0] + reference(x, y)[0]
    np.testing.assert_allclose(plait.jit(g)(x, y), want, rtol=1e-6)
    text = plait.jit(g).lower(x, y).as_text()
    assert text.count("sine") == 1  # one function, called twice


def test_a_program_that_calls_it_is_shown():
    text = str(plait.make_program(lambda x: STATIC.call(x, x[0])[0])(X))
    assert "%3: f32[2,3], %4: f32[1] = export.call(%0, %2; artifact=<Exported>)" in text


def test_different_sizes_in_one_program():
    def g(a, b):
        return OPEN.call(*a)[0].sum() + OPEN.call(*b)[0].sum()

    want = reference(*given(2, 1))[0].sum() + reference(*given(3, 4))[0].sum()
    np.testing.assert_allclose(plait.jit(g)(given(2, 1), given(3, 4)), want, rtol=1e-5)


def test_in_loops_and_branches():
    def g(x, y):
        total, _ = lax.scan(lambda c, r: (c + STATIC.call(x, r)[0], None), x * 0, y)
        return lax.cond(total.sum() > 0, lambda t: STATIC.call(t, y[0])[0], lambda t: t, total)

    total = sum(reference(X, r)[0] for r in X)
    want = reference(total, X[0])[0] if total.sum() > 0 else total
    np.testing.assert_allclose(plait.jit(g)(X, X), want, rtol=1e-5)


def test_programs_that_call_it_are_evaluated():
    from plait.ext.ir import evaluate
    from plait.ext.values import asarray

    program = plait.make_program(lambda x, y: OPEN.call(x, y))(X, X[0])
    check(evaluate(program, [asarray(X), asarray(X[0])]), reference(X, X[0]))


def test_an_exported_function_in_another():
    types = symbolic_args_specs((X, X[0]), ("2*n, 3", "2*n + m"), ["n >= 2"])
    outer = export(lambda x, y: [v.sum() * x.shape[0] for v in OPEN.call(x, y)])(*types)
    again = deserialize(outer.serialize())
    for n, m in ((2, 1), (3, 2)):
        x, y = given(2 * n, m)
        check(again.call(x, y), [v.sum() * x.shape[0] for v in reference(x, y)])


def test_a_static_one_in_an_open_one():
    inner = export(lambda y: y * 2)(X[0])
    types = symbolic_args_specs(X, "b, 3")
    outer = deserialize(export(lambda x: inner.call(x.sum(0)) + x)(types).serialize())
    np.testing.assert_allclose(outer.call(X), X.sum(0) * 2 + X)


def test_types_of_results_are_known():
    types = symbolic_args_specs((X, X[0]), ("2*n, 3", "2*n + m"))
    out = plait.eval_shape(OPEN.call, *types)
    assert [str(o.shape) for o in out] == ["(2*n, 3)", "(1,)"]


def test_other_platforms_do_not_get_it():
    g = plait.jit(lambda x: STATIC.call(x, x[0])[0])
    with pytest.raises(NotExportable, match="exported for cpu, and is called on tpu"):
        g.trace(X).lower(lowering_platforms=("tpu",)).as_text()


# ---- what does not fit ---------------------------------------------------------------------


def called(exported, x, y):
    """At once and under jit: one error."""
    with pytest.raises(PlaitError) as now:
        exported.call(x, y)
    with pytest.raises(PlaitError) as traced:
        plait.jit(lambda x, y: exported.call(x, y))(x, y)
    assert type(now.value) is type(traced.value) and now.value.what == traced.value.what
    assert "test_calling.py" in str(now.value)
    return now.value


def test_a_wrong_dtype():
    e = called(STATIC, X.astype(np.float64), X[0])
    assert isinstance(e, TypeRule)
    assert e.what == "argument `x` of f was exported as f32[2,3] and is f64[2,3]"
    assert e.fix.startswith("convert it with .astype('float32')")


@pytest.mark.parametrize("exported", [STATIC, OPEN], ids=["static", "open"])
def test_a_wrong_shape(exported):
    e = called(exported, X.T.copy(), X[0])
    assert isinstance(e, TypeRule)
    assert e.what.startswith("argument `x` of f was exported as") and e.what.endswith("is f32[3,2]")
    e = called(exported, X, X)
    assert e.what.startswith("argument `y` of f was exported as") and e.what.endswith("is f32[2,3]")


def test_a_named_path():
    exported = export(lambda p, *, k: p["w"][0] + k)({"w": [X, X]}, k=X)
    with pytest.raises(TypeRule, match=r"argument `p\['w'\]\[1\]` of lambda was exported as f32"):
        exported.call({"w": [X, X[0]]}, k=X)
    with pytest.raises(TypeRule, match=r"argument `k` of lambda was exported as f32"):
        exported.call({"w": [X, X]}, k=X.astype(np.int32))


def test_another_structure():
    with pytest.raises(TreeMismatch, match="f was exported for other arguments") as e:
        STATIC.call(X)
    assert "it takes 2 by position and 0 by name, not 1 and 0" in e.value.what
    assert "write exported.call(x, y), with (args, kwargs) like" in e.value.fix
    with pytest.raises(TreeMismatch):
        STATIC.call(X, y=X[0])


def test_what_is_no_array():
    with pytest.raises(TypeRule, match="is not an array"):
        STATIC.call(X, "y")


SQUARE = export(lambda x, y: (x, y))(
    *symbolic_args_specs((X, X), ("2*b, b", "c, c"), ["b >= 2", "mod(c, 4) == 0"])
)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((4, 3), (4, 4)), "a size is"),
        (((5, 2), (4, 4)), "a size is"),
        (((2, 1), (4, 4)), "b >= 2"),
        (((4, 2), (4, 8)), "a size is"),
        (((4, 2), (6, 6)), r"mod\(c, 4\) == 0"),
        (((4, 2), (0, 0)), "c >= 1"),
    ],
)
def test_sizes_that_do_not_fit(shapes, text):
    xs = [np.zeros(s, F32) for s in shapes]
    for exported in (SQUARE, deserialize(SQUARE.serialize())):
        e = called(exported, *xs)
        assert isinstance(e, DimMismatch)
        assert "cannot be called with these sizes" in e.what
        assert f"argument `x` is {'f32' + str(list(shapes[0])).replace(' ', '')}" in e.what
        with pytest.raises(DimMismatch, match=text):
            raise e


@pytest.mark.feature("E05")
def test_constraints_are_kept_and_ask_symbolic_callers_too():
    again = deserialize(SQUARE.serialize())
    eight = np.zeros((8, 8), np.float32)
    assert again.scope.constraints == SQUARE.scope.constraints
    assert repr(again) == repr(SQUARE) and "given b >= 2, mod(c, 4) == 0 for cpu" in repr(again)
    with pytest.raises(UndecidedDim, match="cannot be called with these sizes"):
        plait.eval_shape(again.call, *symbolic_args_specs((X, eight), ("2*n, n", "8, 8")))
    with pytest.raises(ValueError, match="It depends") as caught:  # as other sizes that do not fit
        plait.eval_shape(again.call, *symbolic_args_specs((X, eight), ("2*n, n", "8, 8")))
    assert isinstance(caught.value, DimMismatch) and caught.value.fix
    types = symbolic_args_specs((X, eight), ("2*n, n", "8, 8"), ["n >= 3"])
    assert str(plait.eval_shape(again.call, *types)[0].shape) == "(2*n, n)"


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: x[None] * np.float32(2) - y,
        lambda x, y: plait.numpy.where(x > y, x, y),
        lambda x, y: plait.numpy.broadcast_to(x, y.shape) / (y + 1),
    ],
)
def test_sizes_that_constraints_make_equal_broadcast_together(f):
    """However they are written; and only those."""
    v, w = np.float32([1, 2, 3, 4]), np.float32([4, 3, 2, 1])
    types = symbolic_args_specs((v, w), ("a*2", "b*2"), constraints=("a == b",))
    made = deserialize(export(plait.jit(f))(*types).serialize())
    np.testing.assert_allclose(made.call(v, w), f(v, w), rtol=1e-6)
    for constraints in ((), ("a >= b",), ("a + 1 == b",)):
        types = symbolic_args_specs((v, w), ("a*2", "b*2"), constraints=constraints)
        with pytest.raises(TypeError):
            export(plait.jit(f))(*types)


@pytest.mark.parametrize("names", [None, ["y", "*others"]], ids=["of an earlier release", "other"])
def test_names_of_parameters_are_those_of_the_file(names, tmp_path):
    """A file without names gives positions; the last name may take all further arguments."""
    exported = export(lambda x, *more: x + more[0] + more[1])(X, X, X)
    manifest, members = exported.said(0)
    assert manifest.pop("parameters") == ["x", "*more"]
    manifest |= {} if names is None else {"parameters": names}
    for isolated in (False, True) if names else (False,):
        read = deserialize(container.pack(manifest, members), isolated=isolated)
        with pytest.raises(TypeRule) as e:
            read.call(X, X, X[0])
        wanted = "argument `others[1]` of" if names else "argument `args[2]` of"
        assert e.value.what.startswith(wanted)
