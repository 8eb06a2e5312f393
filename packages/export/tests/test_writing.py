"""export: what it makes of functions, what it refuses, and that equal functions are equal bytes."""

import functools
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext import lower as jaxlib_api
from plait.ext.errors import PlaitError, TypeRule
from plait.ext.ir import Effect, Primitive
from plait.ext.lower import attr, mlir
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.rules import Elementwise, expand_rules, lower_rules
from plait.ext.trace import current
from plait_export import (
    ArtifactError,
    NotExportable,
    default_export_platform,
    deserialize,
    export,
    symbolic_args_specs,
    symbolic_shape,
)
from plait_export.container import stablehlo_version
from plait_export.portable import code_for, parsed

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def scaled(x, factor=2.0):
    return {"y": el.sin(x) * factor, "n": (x.sum(), None)}


# ---- what is exported ----------------------------------------------------------------------


@pytest.mark.parametrize("f", [scaled, plait.jit(scaled)], ids=["plain", "jitted"])
def test_an_exported_function_says_what_it_is(f):
    exported = export(f)(X, factor=3.0)
    assert exported.fun_name == "scaled"
    assert [repr(a) for a in exported.in_avals] == ["f32[2,3]", "f32[]*"]
    assert [repr(a) for a in exported.out_avals] == ["f32[]", "f32[2,3]"]
    assert exported.platforms == (default_export_platform(),) == ("cpu",)
    assert exported.custom_calls == ()
    assert repr(exported) == "<Exported scaled(f32[2,3], f32[]*) -> (f32[], f32[2,3]) for cpu>"
    out = exported.call(X, factor=3.0)
    np.testing.assert_allclose(out["y"], np.sin(X) * 3, rtol=1e-6)
    assert out["n"][0].item() == 15 and out["n"][1] is None


def test_types_serve_as_well_as_arrays():
    typed = export(scaled)(plait.ShapeDtypeStruct((2, 3), np.float32))
    assert typed.serialize() == export(scaled)(X).serialize()


def test_static_arguments_are_gone():
    f = plait.jit(lambda x, n, *, up: x * n if up else x, static_argnums=1, static_argnames="up")
    exported = export(f)(X, 3, up=True)
    np.testing.assert_array_equal(exported.call(X), X * 3)


def test_closed_over_arrays_are_in_the_artifact():
    w = plait.jit(lambda: sh.iota(np.float32, (3, 2)))()
    exported = deserialize(export(lambda x: x @ w + w.sum())(X).serialize())
    np.testing.assert_allclose(exported.call(X), X @ np.asarray(w) + np.asarray(w).sum())


def test_callables_and_partials():
    class Model:
        def __call__(self, x):
            return x + 1

    for f in (Model(), functools.partial(scaled, factor=1.0)):
        exported = export(f)(X)
        assert exported.call(X) is not None
    with pytest.raises(TypeRule, match="export needs a function, not 3"):
        export(3)


def test_static_shapes_make_static_operations():
    text = export(lambda x: x.reshape(-1)[1:] + 1)(X).mlir_module()
    assert "dynamic" not in text and "get_dimension_size" not in text and "?" not in text


@pytest.mark.feature("E08", "E10")
def test_sizes_are_the_first_arguments_of_inner_functions():
    inner = plait.jit(lambda x: x.sum(1) * x.shape[0])

    def twice(x):
        return inner(x) + inner(x + 1)

    types = symbolic_args_specs(X, "b, a")
    text = export(lambda x: twice(x))(types).mlir_module()
    (line,) = [t for t in text.splitlines() if "func.func private" in t and "tensor<i32>" in t]
    assert "(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<?x?xf32>)" in line
    assert "dynamic_broadcast_in_dim" in text


@pytest.mark.feature("E09")
def test_programs_get_no_inputs_for_sizes():
    program = plait.make_program(lambda x: x.sum(1) * x.shape[0])(symbolic_args_specs(X, "b, a"))
    assert len(program.inputs) == 1


def test_artifacts_are_in_an_old_version_of_stablehlo_if_that_suffices():
    written = export(lambda x: plait.numpy.argsort(x))(X).mlir_module_serialized
    assert stablehlo_version(written) == (1, 9, 0)


def test_a_module_alone_refuses_sizes_that_do_not_fit():
    """Without Plait's own checks, as other runtimes meet it."""
    types = symbolic_args_specs((X, X[0]), ("b, c", "b + 1"), ["b >= 2", "mod(c, 3) == 0"])
    exported = export(lambda x, y: (x.sum(), y))(*types)
    assert "b >= 2" in exported.mlir_module()

    def refined(b, c, n):
        avals = [plait.ShapeDtypeStruct(s, np.float32).aval for s in ((b, c), (n,))]
        return code_for(exported.mlir_module_serialized, avals, True)

    refined(2, 3, 3)
    for sizes, text in [((2, 3, 4), "axis 0 of argument 1 must have size b"),
                        ((1, 3, 2), "sizes must satisfy b >= 2"),
                        ((2, 4, 3), r"sizes must satisfy mod\(c, 3\) == 0")]:  # fmt: skip
        with pytest.raises(ArtifactError, match=text):
            refined(*sizes)


# ---- determinism ---------------------------------------------------------------------------


def poly(x, y):
    """Something with constants, calls, loops and sizes."""
    w = plait.jit(lambda: sh.iota(np.float32, (3,)))() + 0.5
    step = plait.jit(lambda c, r: (c + r * w, el.sin(c)))
    c, ys = lax.scan(step, y, x)
    return {"c": c, "ys": ys, "s": plait.numpy.sort(x, 0) / x.shape[0]}


POLY = (X, X[0]), ("b, 3", None)


def test_equal_functions_are_equal_bytes():
    types = symbolic_args_specs(*POLY)
    first = export(poly)(*types)
    assert first.serialize() == first.serialize() == export(poly)(*types).serialize()
    assert deserialize(first.serialize()).serialize() == first.serialize()


def test_every_process_makes_the_same_bytes(tmp_path):
    made = []
    for seed in ("1", "2"):
        path = tmp_path / seed
        code = (
            f"import sys; sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})\n"
            "from test_writing import POLY, poly\n"
            "from plait_export import export, symbolic_args_specs\n"
            "saved = export(poly)(*symbolic_args_specs(*POLY)).serialize()\n"
            f"open({str(path)!r}, 'wb').write(saved)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PLAIT_CACHE_DIR": "", "PATH": ""},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        made.append(path.read_bytes())
    assert made[0] == made[1] == export(poly)(*symbolic_args_specs(*POLY)).serialize()


# ---- platforms -----------------------------------------------------------------------------


@pytest.mark.feature("E11", "E12")
@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
def test_any_platform_is_lowered_for_here(platform):
    exported = export(lambda x: x.cumsum(0) @ x.T, platforms=[platform])(X)
    assert exported.platforms == (platform,)
    again = deserialize(exported.serialize())
    assert again.platforms == (platform,)
    if platform == "cpu":
        np.testing.assert_allclose(again.call(X), np.cumsum(X, 0) @ X.T)
        return
    with pytest.raises(NotExportable) as e:
        again.call(X)
    assert f"exported for {platform}, and is called on cpu" in str(e.value)
    assert f"platforms=['{platform}', 'cpu']" in e.value.fix


@pytest.mark.feature("E12")
def test_one_artifact_for_several_platforms():
    f = lambda x: [plait.numpy.argsort(x, 0), x.cumsum(0)]  # noqa: E731
    types = symbolic_args_specs(X, "b, 3")
    exported = deserialize(export(f, platforms=("tpu", "cuda", "cpu"))(types).serialize())
    assert exported.platforms == ("tpu", "cuda", "cpu")
    order, sums = exported.call(X[::-1])
    np.testing.assert_array_equal(order, np.argsort(X[::-1], 0))
    np.testing.assert_allclose(sums, np.cumsum(X[::-1], 0))


@pytest.mark.parametrize(
    ("platforms", "hint"),
    [(["gpu"], "write 'cuda'"), (["cpu", "x"], "use some of cpu, cuda"), ([], "use some of")],
)
def test_unknown_platforms(platforms, hint):
    with pytest.raises(TypeRule) as e:
        export(scaled, platforms=platforms)
    assert hint in e.value.fix


# ---- what is refused -----------------------------------------------------------------------


def printing(x):
    plait.debug.print("x = {}", x)
    return plait.jit(lambda y: plait.pure_callback(np.sin, y, y))(x)


def test_effects_and_callbacks_are_refused_with_their_lines():
    with pytest.raises(NotExportable) as e:
        export(printing)(X)
    first, *lines = e.value.what.split("\n  ")
    assert first == "printing calls Python or acts on the world, which an artifact cannot:"
    assert len(lines) == 2
    assert all("a call of Python at" in line and "test_writing.py:" in line for line in lines)
    assert "leave out debug.print" in e.value.fix


def test_callbacks_that_do_not_matter_are_left_out():
    def f(x):
        plait.pure_callback(np.sin, x, x)
        return x

    assert "custom_call" not in export(f)(X).mlir_module()


MARK = Effect("export_test.mark", repeatable=True)
mark = Primitive("export_test.mark", lambda x: x, (Elementwise,), effect=lambda params: MARK)
printed = Primitive("export_test.printed", lambda x: x, (Elementwise,), effect=lambda params: MARK)
expand_rules.rule(mark)(lambda x: el.mul(x, 2.0))


@expand_rules.rule(printed)
def _(x):
    plait.debug.print("{}", x)
    return x


def test_operations_that_are_marked_for_interpreters_are_exported():
    """They stay where their results are not used, and act on nothing where they are lowered."""

    def f(x):
        mark.bind(x)
        return lax.fori_loop(0, 2, lambda i, y: mark.bind(y), x)

    np.testing.assert_array_equal(deserialize(export(plait.jit(f))(X).serialize()).call(X), X * 4)
    with pytest.raises(NotExportable, match="export_test.printed at .*test_writing.py:"):
        export(lambda x: printed.bind(mark.bind(x)))(X)


outside = Primitive("export_test.outside", lambda x: x, (Elementwise,))


@lower_rules.rule(outside)
def _(e, xs, ins, outs):
    name = {"call_target_name": mlir.string("somebodys_function"), "api_version": attr("2 : i32")}
    return e.op("stablehlo.custom_call", xs, *outs, **name)


def test_custom_calls_are_refused_unless_allowed():
    with pytest.raises(NotExportable, match="somebodys_function") as e:
        export(outside)(X)
    assert "custom_calls=['somebodys_function']" in e.value.fix
    exported = export(outside, custom_calls=["somebodys_function"])(X)
    assert exported.custom_calls == ("somebodys_function",)
    saved = exported.serialize()
    with pytest.raises(PlaitError, match="somebodys_function") as e:
        deserialize(saved)
    assert "if you trust it" in e.value.fix
    again = deserialize(saved, custom_calls=["somebodys_function"])
    assert again.custom_calls == ("somebodys_function",)


def test_sizes_of_two_scopes_are_refused():
    one = plait.ShapeDtypeStruct(symbolic_shape("b", constraints=["b >= 2"]), np.float32)
    two = plait.ShapeDtypeStruct(symbolic_shape("c"), np.float32)
    with pytest.raises(NotExportable, match="of two scopes"):
        export(lambda x, y: (x, y))(one, two)


def test_sizes_that_nothing_tells_are_refused():
    (k,) = symbolic_shape("k")
    with pytest.raises(PlaitError, match="the size k is not known") as e:
        export(lambda x: sh.iota(np.float32, (k,)))(X)
    assert "(0, k)" in e.value.fix
    with pytest.raises(PlaitError, match="sizes do not determine a and b"):
        export(lambda x: x)(symbolic_args_specs(X, "a + b, 3"))


@pytest.mark.feature("E05")
def test_a_size_that_only_an_empty_array_tells():
    def f(carrier, x):
        return sh.iota(np.float32, (carrier.shape[1],)) + x

    types = symbolic_args_specs((np.zeros((0, 2), np.float32), np.float32(0)), ("0, k", None))
    exported = deserialize(export(f)(*types).serialize())
    for k in (1, 4):
        got = exported.call(np.zeros((0, k), np.float32), np.float32(1))
        np.testing.assert_array_equal(got, np.arange(k) + 1)


def test_captured_tracers_are_refused():
    def outer(y):
        with pytest.raises(NotExportable, match="closes over .*being traced"):
            export(lambda x: x + y)(X)
        assert current().staging
        return y

    plait.jit(outer)(X)


# ---- others who read it --------------------------------------------------------------------


def interpreted(artifact: bytes, xs: list[np.ndarray]) -> list[np.ndarray]:
    """The results by StableHLO's reference interpreter, which compiles nothing."""
    with jaxlib_api.lock:
        module = parsed(artifact)
        with module.context:
            dense = mlir.bindings().ir.DenseElementsAttr
            outs = mlir.bindings().stablehlo.eval_module(module, [dense.get(x) for x in xs])
            return [np.array(o) for o in outs]


def test_the_reference_interpreter_agrees():
    def f(x, y):
        total, _ = lax.scan(lambda c, r: (el.tanh(c + r), c), y, x)
        return [x @ x.T, total, plait.numpy.sort(x, 1), x[:, ::-1], el.erf(x)]

    x, y = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32), X[0]
    exported = export(f)(x, y)
    for got, want in zip(interpreted(exported.mlir_module_serialized, [x, y]), exported.call(x, y)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
