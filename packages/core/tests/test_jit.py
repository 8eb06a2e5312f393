"""jit: arguments of every role, and versions of one function.

Invariant: results are compared with those of the same Python on numpy's arrays.
"""

import functools

import numpy as np
import pytest

import plait
from plait._base.jaxlib_api import EFFORTS
from plait.ext.errors import TypeRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(4, np.float32)


# ---- donation --------------------------------------------------------------------------------


def test_donated_twice():
    """One array for two donated arguments, or for a donated and another one."""
    x = f32(ones)
    try:
        out, _ = plait.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)
    y = f32(ones)
    try:
        out = plait.jit(lambda a, b: a + b, donate_argnums=0)(y, y)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)


def test_donating_in_a_loop():
    """State that is passed through a donating step."""
    step = plait.jit(lambda s, k: (s[0] + k, s[1] * 2), donate_argnums=0)
    state = f32(0), f32(1)
    for i in range(5):
        state = step(state, f32(i))
    assert [s.item() for s in state] == [10, 32]


# ---- static arguments ------------------------------------------------------------------------


def test_partial_with_static_arguments():
    """jit of functools.partial and of other callables, with static arguments."""
    f = functools.partial(lambda n, x: x * n)
    assert plait.jit(f, static_argnums=0)(2, f32(1)).item() == 2
    g = functools.partial(lambda k, n, x: x * n + k, 10)
    assert plait.jit(g, static_argnums=0)(2, f32(1)).item() == 12
    assert plait.jit(functools.partial(lambda x, n: x * n, n=3))(f32(1)).item() == 3

    class Scale:
        def __call__(self, x, n):
            return x * n if isinstance(n, int) else 0

    assert plait.jit(Scale(), static_argnums=1)(f32(1), 3).item() == 3
    assert plait.jit(Scale(), static_argnames="n")(f32(1), n=3).item() == 3


def test_static_from_the_end():
    """Negative positions count from the end of the signature."""
    f = lambda x, n: x * (2 if n else 1)  # noqa: E731
    assert plait.jit(f, static_argnums=-1)(f32(1), True).item() == 2
    assert plait.jit(f, static_argnums=(-1,))(f32(1), False).item() == 1
    assert plait.jit(lambda n, x: x * n, static_argnums=-2)(3, f32(2)).item() == 6


def test_static_name_given_by_position():
    """A name is a position too, and a position a name."""
    f = lambda x, n: x * n if isinstance(n, int) else "traced"  # noqa: E731
    assert plait.jit(f, static_argnames="n")(f32(1), 3).item() == 3
    assert plait.jit(f, static_argnames="n")(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), 3).item() == 3
    mixed = plait.jit(lambda a, b, c: a * b + c, static_argnames=("b",), static_argnums=(2,))
    assert mixed(f32(2), 3, 4).item() == mixed(f32(2), b=3, c=4).item() == 10


def test_static_that_cannot_be():
    """A list cannot be hashed, an argument cannot be out of range."""
    with pytest.raises(TypeRule, match="hashable"):
        plait.jit(lambda n, x: x * n[0], static_argnums=0)([1], f32(1))
    with pytest.raises(TypeRule, match="out of range"):
        plait.jit(lambda x: x, static_argnums=3)
    with pytest.raises(TypeRule, match="not an argument"):
        plait.jit(lambda x: x, static_argnames="y")


def test_method():
    """A method decorated with jit says that `self` is not an array."""

    class Model:
        k = 2.0

        @plait.jit
        def f(self, x):
            return x * self.k

        def g(self, x):
            return x * self.k

    model = Model()
    with pytest.raises(TypeRule, match="Model"):
        model.f(f32(1))
    assert plait.jit(model.g)(f32(1)).item() == 2


@pytest.mark.feature("C12")
@pytest.mark.parametrize("number", [1, np.int64(1), np.uint8(1), np.array(1), [np.int32(1)]])
def test_kinds_of_numbers(number):
    """Numbers of arguments may be numpy's."""
    f = lambda x, n: x * range(n + 1)[-1]  # noqa: E731
    assert plait.jit(f, static_argnums=number)(f32(2), 3).item() == 6
    assert plait.jit(f, static_argnums=number).lower(f32(2), 3).compile()(f32(2)).item() == 6
    assert plait.make_program(f, static_argnums=number)(f32(2), 3).in_avals == [f32(2).aval]
    x = f32([1.0, 2.0])
    plait.jit(lambda a, b: b + 1, donate_argnums=number)(f32(1), x)
    assert x.is_deleted()


# ---- what is refused -------------------------------------------------------------------------


def test_what_jit_refuses():
    """Each mistake is named where jit is written, or at the call."""
    for make, text in (
        (lambda: plait.jit(3), "needs a function"),
        (lambda: plait.jit(lambda x: x, static_argnums=0, donate_argnums=0), "static"),
        (lambda: plait.jit(lambda x: x, static_argnames="x", donate_argnums=0), "donated"),
        (lambda: plait.jit(lambda x: x, static_argnums=1), "0 to 0"),
        (lambda: plait.jit(lambda x: x, static_argnums=-2), "out of range"),
        (lambda: plait.jit(lambda x: x, donate_argnames="y"), "'y' is not an argument"),
        (lambda: plait.jit(lambda x, /, **k: x, static_argnames="x"), "'x' is a positional-only"),
        (lambda: plait.jit(lambda x, /, y: x, donate_argnames=("y", "x")), "'x' is a positional"),
        (lambda: plait.jit(lambda x: x, compiler_options=[1]), "must be a dict"),
        (lambda: plait.jit(lambda x: x, backend="abacus"), "abacus"),
        (lambda: plait.jit(lambda x: x, device=1, in_shardings=1), "give one of them"),
    ):
        with pytest.raises(plait.PlaitError) as caught:
            make()
        assert text in f"{caught.value} {caught.value.fix}"


@pytest.mark.feature("C12")
def test_positions_without_a_name():
    """Of a function of any number of arguments a position may be given a role; a call that leaves
    it out is refused."""
    f = plait.jit(lambda *xs: xs[0] * xs[2], static_argnums=2)
    for k in (2, 3, 2):
        assert f(f32(5), f32(0), k).item() == 5 * k
    with pytest.raises(TypeRule, match=r"2 positional arguments.*static \(2\)"):
        f(f32(5), f32(0))
    g = plait.jit(lambda *xs: xs[0] + xs[1], donate_argnums=1)
    x = f32(2)
    assert g(f32(1), x).item() == 3 and x.is_deleted()
    with pytest.raises(TypeRule, match=r"1 positional arguments.*donated \(1\)"):
        g(f32(1))
    h = plait.jit(lambda x, **k: x * k["n"], static_argnames="n")
    assert [h(f32(2), n=n).item() for n in (3, 4)] == [6, 8]


def test_defaults_of_static_arguments():
    """A static argument that is left out has its default, as an argument of the call it has not."""
    f = plait.jit(lambda x, n=3, *, m=2: x * n + m, static_argnames=("n", "m"))
    assert f(f32(1)).item() == 5
    assert f(f32(1), 4).item() == f(f32(1), n=4).item() == 6
    assert f(f32(1), m=7).item() == 10
    assert f(f32(1), m=8, n=1).item() == f(f32(1), n=1, m=8).item() == 9


# ---- how often Python runs ---------------------------------------------------------------------


def traced(**options):
    """A jitted function x, n -> x * n + 1, and how often its Python ran."""
    count = []

    def f(x, n=2):
        count.append(n)
        return x * n + 1

    return plait.jit(f, **options), count


def test_one_version_for_equal_static_values():
    f, count = traced(static_argnames="n")
    for n in (2, 3, 2, 3, 2):
        assert f(f32(1), n=n).item() == n + 1
        assert f(f32(1), n).item() == n + 1
    # by name and by position are calls of two forms, of which each is traced once
    assert sorted(count) == [2, 2, 3, 3]


def test_types_and_not_values():
    """A new shape, dtype or weakness is traced, another value is not."""
    f, count = traced()
    for x in (1.0, 2.0, f32(1), f32(5), f32([1, 2]), f32([3, 4]), np.int8(3), np.int8(4)):
        np.testing.assert_array_equal(f(x), np.asarray(x) * 2 + 1)
    assert len(count) == 4
    f.clear_cache()
    f(f32(1))
    assert len(count) == 5


def test_settings_are_part_of_what_is_known():
    f, count = traced()
    x = np.float64([1, 2])
    assert f(x).dtype == np.float64
    with plait.config(x64=False):
        assert f(x).dtype == np.float32
    assert f(x).dtype == np.float64


def test_without_jit():
    """Under the setting `jit=False` Python runs at every call, on values, with any roles."""
    for options in ({}, {"static_argnames": "n"}, {"donate_argnums": 0}):
        f, count = traced(**options)
        with plait.config(jit=False):
            for k in range(3):
                x = f32(k)
                assert f(x).item() == 2 * k + 1 and not x.is_deleted()
        assert len(count) == 3


@pytest.mark.feature("C16")
def test_inner_calls_are_traced_once():
    """A jitted function that others call is one program for them all, and one call for each."""
    f, count = traced()
    g = plait.jit(lambda x: f(f(x)) + f(x))
    h = plait.jit(lambda x: f(x) * 3)
    assert g(f32(1)).item() == 7 + 3 and h(f32(1)).item() == 9
    assert len(count) == 1
    program = plait.make_program(lambda x: f(f(x)) + f(x))(f32(1))
    calls = [e for e in program.eqns if e.prim.name == "core.call"]
    assert len(calls) == 3 and len({id(e.params["program"]) for e in calls}) == 1


def test_inline_calls():
    """With `inline` a staged call becomes its operations."""
    f, _ = traced(inline=True)
    program = plait.make_program(lambda x: f(f(x)))(f32(1))
    assert [e.prim.name for e in program.eqns] == ["core.mul", "core.add"] * 2
    assert f(f32(1)).item() == 3


def test_staged_calls_of_any_structure():
    """Trees, names, numbers and closed-over values of a call inside another traced function."""

    def outer(x, y):
        inner = plait.jit(lambda t, *, k: {"a": t["p"] * k, "b": (t["q"] + x,)})
        out = inner({"p": x, "q": y}, k=3.0)
        return out["a"] + out["b"][0] + plait.jit(lambda: x * y)()

    for _ in range(2):
        assert plait.jit(outer)(f32(2), f32(5)).item() == 6 + 7 + 10
    single = plait.jit(lambda x, y: x + y)
    assert plait.jit(lambda x: single(x, 2) + single(x, 3.0) + single(x, True))(f32(1)).item() == 9
    many = plait.jit(lambda x: (x, [x + 1]))
    a, (b,) = plait.jit(lambda x: many(many(x)[0]))(f32(1))
    assert (a.item(), b.item()) == (1, 2)


def test_values_of_a_transformation_around():
    """A function that closes over a value being traced is not kept for calls from elsewhere."""
    for k in (2.0, 3.0):
        assert plait.jit(lambda x, k=k: plait.jit(lambda y: y * x)(k))(f32(5)).item() == 5 * k


# ---- what a jitted function offers -------------------------------------------------------------


def test_what_it_offers():
    """Name and documentation of the function; its trace, its text and its types, without running
    it, with static arguments as in a call."""

    @functools.partial(plait.jit, static_argnames="n")
    def scaled(x, n):
        """Scale."""
        return {"y": x * n}

    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    assert scaled.eval_shape(f32(ones), n=2)["y"].shape == (4,)
    lowered = scaled.lower(f32(ones), n=2)
    assert "stablehlo.multiply" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(f32(ones))["y"], 2 * ones)
    staged = scaled.trace(plait.ShapeDtypeStruct((4,), np.float32), 3)
    np.testing.assert_array_equal(staged.lower().compile()(f32(ones))["y"], 3 * ones)
    make = plait.jit(static_argnums=1)
    assert make(lambda x, n: x * n)(f32(2), 4).item() == 8


def test_order_of_names():
    """Keyword arguments are told apart by name, however they are ordered; donated ones, too."""
    f = plait.jit(lambda *, b, a: a - 2 * b)
    for _ in range(3):
        assert f(a=f32(10), b=f32(1)).item() == f(b=f32(1), a=f32(10)).item() == 8
    g = plait.jit(lambda x, *, b, a: (x + b, a * 2), donate_argnames="b")
    for _ in range(3):
        x, a, b = f32(1), f32(2), f32(3)
        assert [v.item() for v in g(x, a=a, b=b)] == [4, 4]
        assert b.is_deleted() and not a.is_deleted() and not x.is_deleted()
    h = plait.jit(lambda t, n, x: (t["u"] + x, t["v"][0] * n), static_argnums=1, donate_argnums=0)
    for n in (2, 3, 2):
        t, x = {"u": f32(1), "v": [f32(5)]}, f32(10)
        assert [v.item() for v in h(t, n, x)] == [11, 5 * n]
        assert t["u"].is_deleted() and t["v"][0].is_deleted() and not x.is_deleted()


def test_an_executable_takes_the_arguments_that_it_was_lowered_for():
    f = plait.jit(lambda d, x, n=2: d["a"] - n * x, static_argnames=("n",))
    lowered = {
        (("d", "x"), ()): f.lower({"a": 1.0}, 2.0),
        (("d",), ("x",)): f.lower({"a": 1.0}, x=2.0),
        ((), ("d", "x")): f.lower(x=2.0, d={"a": 1.0}, n=2),
        (("d", "x"), ("n",)): f.lower({"a": 1.0}, 2.0, n=2),
    }
    d = {"a": 5.0}
    calls = {
        (("d", "x"), ()): lambda c: c(d, 3.0),
        (("d",), ("x",)): lambda c: c(d, x=3.0),
        ((), ("d", "x")): lambda c: c(x=3.0, d=d),
    }
    for way, low in lowered.items():
        compiled = low.compile()
        for other, call in calls.items():
            if other == (way[0], tuple(n for n in way[1] if n != "n")):
                assert float(call(compiled)) == 5.0 - 2 * 3.0
            else:
                with pytest.raises(
                    TypeError, match="of another structure than it was compiled for"
                ):
                    call(compiled)
    compiled = lowered[("d", "x"), ()].compile()
    wrong = (lambda: compiled(3.0, d), lambda: compiled([5.0, 3.0]), lambda: compiled(d, [3.0]),
             lambda: compiled({"b": 5.0}, 3.0), lambda: compiled(d, 3.0, 2), lambda: compiled(d),
             lambda: compiled(d, 3.0, n=2))  # fmt: skip
    with pytest.raises(TypeError, match=r"2 positional arguments \(`d`, `x`\), not 1"):
        compiled(d)
    for call in wrong:
        with pytest.raises(TypeError, match="static"):
            call()


# ---- functions that wrap a jitted one ---------------------------------------------------------


def test_a_wrapper_of_a_jitted_function_speaks_of_itself():
    def plain(x):
        return x

    inner = plait.jit(plain)

    @functools.wraps(inner)
    def outer(x):
        return {"more": inner(x) + 1, "sum": pnp.sum(inner(x))}

    def bare(x):
        return {"more": plain(x) + 1, "sum": pnp.sum(plain(x))}

    x = plait.ShapeDtypeStruct((3,), "float32")
    assert plait.eval_shape(outer, x) == plait.eval_shape(bare, x)
    assert plait.eval_shape(plait.jit(outer), x) == plait.eval_shape(bare, x)
    assert sorted(plait.jit(outer).eval_shape(x)) == ["more", "sum"]
    for name in ("lower", "trace", "eval_shape", "clear_cache"):
        assert hasattr(inner, name) and hasattr(plait.jit(outer), name)
        assert name in dir(inner)  # editors complete it
        assert not hasattr(outer, name), name  # it would be that of `inner`


def test_attributes_of_the_user_reach_wrappers():
    def plain(x):
        return x

    plain.unit = "metre"
    inner = plait.jit(plain)
    inner.label = "a"
    outer = functools.wraps(inner)(lambda x: inner(x) * 2)
    assert (outer.unit, outer.label, outer.__name__) == ("metre", "a", "plain")
    assert outer.__wrapped__ is inner


def test_the_repr_names_the_function():
    """An object without a name is shown by its class, a partial by its function."""

    class Model:
        def __call__(self, x):
            return x

        def step(self, x):
            return x

    def named(x, y=1):
        return x

    for f, said in [
        (named, "named"),
        (lambda x: x, "<lambda>"),
        (Model().step, "Model.step"),
        (Model(), "Model"),
        (functools.partial(named, y=2), "partial("),
        (functools.partial(functools.partial(named), y=2), "named"),
        (functools.partial(Model()), "Model"),
        (np.sin, "sin"),
    ]:
        assert said in repr(plait.jit(f)), f
        assert "_jitted" not in repr(plait.jit(f)) and "_jitted" not in plait.jit(f).__name__


@pytest.mark.parametrize("name", ["exec_time_optimization_effort", "memory_fitting_effort"])
def test_efforts_of_the_compiler(name):
    if name not in EFFORTS:  # newer releases of jaxlib
        with pytest.raises(plait.errors.RuntimeRefusal, match=f"compiler_options: .*{name}"):
            plait.jit(lambda x: x * 3, compiler_options={name: 0.5})(2.0)
        return
    for value in (0.0, -1.0, 0.5):
        assert plait.jit(lambda x: x * 3, compiler_options={name: value})(2.0) == 6
        assert plait.jit(lambda x: x * 3).lower(2.0).compile({name: value})(2.0) == 6
    with pytest.raises(plait.errors.ArgumentError, match=name):
        plait.jit(lambda x: x, compiler_options={name: "much"})


@pytest.mark.parametrize("name", ["optimization_level", "memory_fitting_level"])
def test_levels_of_the_compiler(name):
    for value in (0, 1, 2):
        assert plait.jit(lambda x: x * 3, compiler_options={name: value})(2.0) == 6
    with pytest.raises(plait.errors.ArgumentError, match=name):
        plait.jit(lambda x: x, compiler_options={name: 0.5})
