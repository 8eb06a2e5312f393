"""Functions exported to TensorFlow: run there, differentiated there, saved, and loaded by a process
that has TensorFlow only.

`nox -s tensorflow` runs these where TensorFlow is installed.

Invariant: values are compared with numpy's, derivatives with formulas or TensorFlow's own.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait_export import NotExportable
from plait_export.portable import text_of
from plait_export.tensorflow import to_tf

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

F32 = np.float32
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
W = np.linspace(0, 1, 6, dtype=F32).reshape(3, 2)
UNKNOWN = [tf.TensorSpec((None, 3), tf.float32)]


def layer(params, x):
    return {"y": pnp.tanh(x @ params["w"] + params["b"][0])}


PARAMS = {"w": W, "b": [np.float32([0.5, -0.5])]}


def expected(x):
    return np.tanh(x @ W + PARAMS["b"][0])


def slope(x):
    """The gradient of the sum of `expected` with respect to (b, w)."""
    inner = 1 - expected(x) ** 2
    return inner.sum(0), x.T @ inner


def modules(concrete) -> str:
    """The text of the StableHLO in a graph."""
    found = [op.get_attr("module") for op in concrete.graph.get_operations()
             if op.type == "XlaCallModule"]  # fmt: skip
    assert found
    return "\n".join(map(text_of, found))


def taped(f, *xs):
    """(results, gradient of the sum of all of them), by TensorFlow."""
    xs = [tf.convert_to_tensor(x) for x in xs]
    with tf.GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        out = f(*xs)
        total = tf.add_n([tf.reduce_sum(y) for y in tf.nest.flatten(out)])
    return out, tape.gradient(total, xs)


# ---- values --------------------------------------------------------------------------------

WAYS = {
    "eagerly": lambda f: f,
    "in a graph": lambda f: tf.function(f),
    "compiled": lambda f: tf.function(f, jit_compile=True),
    "without autograph": lambda f: tf.function(f, autograph=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_trees_of_tensors(way):
    f = WAYS[way](to_tf(layer))
    out = f(tf.nest.map_structure(tf.constant, PARAMS), tf.constant(X))
    assert list(out) == ["y"] and out["y"].shape == (4, 2)
    np.testing.assert_allclose(out["y"], expected(X), rtol=1e-6)


def test_variables_that_a_module_holds():
    module = tf.Module()
    module.params = tf.nest.map_structure(tf.Variable, PARAMS)
    f = to_tf(lambda p, pair, *, scale: (layer(p, pair[0])["y"] * scale, pair[1]))
    with tf.GradientTape() as tape:
        y, n = f(module.params, (X, 7), scale=2.0)
        total = tf.reduce_sum(y)
    np.testing.assert_allclose(y, 2 * expected(X), rtol=1e-6)
    assert n.dtype == tf.int32 and n.numpy() == 7
    b, w = tape.gradient(total, [module.params["b"][0], module.params["w"]])
    for got, want in zip((b, w), slope(X), strict=True):
        np.testing.assert_allclose(got, 2 * want, rtol=1e-5)


NUMBERS = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 complex64 "
    "complex128 float8_e4m3fn float8_e5m2"
)


@pytest.mark.parametrize("name", ["bool", *NUMBERS.split()])
def test_every_dtype_passes(name):
    dtype = tf.as_dtype(name)
    x = np.array([0, 1, 1]).astype(dtype.as_numpy_dtype)
    out = to_tf(lambda x: (x, x.reshape(3, 1)))(x)
    assert [o.dtype for o in out] == [dtype] * 2
    np.testing.assert_array_equal(out[1].numpy().astype(complex)[:, 0], [0, 1, 1])


def test_sizes_that_only_the_call_knows():
    f = to_tf(
        lambda x: (pnp.arange(x.shape[0]), pnp.concatenate([x, x]), x.mean(0)),
        polymorphic_shapes="b, _",
    )
    graph = tf.function(f, input_signature=UNKNOWN)
    assert [o.shape.as_list() for o in graph.get_concrete_function().outputs] == [
        [None], [None, 3], [3]
    ]  # fmt: skip
    for n in (1, 4, 9):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(F32)
        for call in (f, graph):
            count, twice, mean = call(x)
            np.testing.assert_array_equal(count, np.arange(n))
            np.testing.assert_array_equal(twice, np.concatenate([x, x]))
            np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5, atol=1e-6)


def test_linear_algebra():
    """TensorFlow has none of the libraries that artifacts of ours call."""
    la = pnp.linalg

    def f(x):
        p = x @ pnp.swapaxes(x, -1, -2) + pnp.eye(3)
        return la.inv(p), la.cholesky(p), la.eigvalsh(p), la.svd(x, compute_uv=False), la.qr(x).R

    x = np.random.default_rng(0).normal(size=(2, 3, 3))
    p = x @ np.swapaxes(x, 1, 2) + np.eye(3)
    converted = tf.function(to_tf(f, polymorphic_shapes="b, _, _"))
    inverse, low, values, singular, r = converted(x)
    np.testing.assert_allclose(inverse, np.linalg.inv(p), rtol=1e-10)
    np.testing.assert_allclose(low, np.linalg.cholesky(p), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(p), rtol=1e-10)
    np.testing.assert_allclose(singular, np.linalg.svd(x, compute_uv=False), rtol=1e-10)
    np.testing.assert_allclose(np.abs(r), np.abs(np.linalg.qr(x)[1]), rtol=1e-10, atol=1e-14)
    _, (gradient,) = taped(to_tf(lambda p: la.slogdet(p)[1]), p)
    np.testing.assert_allclose(gradient, np.swapaxes(np.linalg.inv(p), 1, 2), rtol=1e-10)


def named(f, graph, shapes, *constraints):
    return to_tf(f, polymorphic_shapes=shapes, polymorphic_constraints=constraints,
                 enable_graph=graph)  # fmt: skip


MISFITS = {
    "unequal sizes": (
        lambda graph: named(lambda x, p: x * p["w"], graph, "b, 3"),
        (X, {"w": X[:2]}),
        "axis 0 of args[1]['w'] must have size b, which is 4; found 2",
        "argument `p['w']` is f32[2,3], exported as f32[b,3]",
    ),
    "no multiple": (
        lambda graph: named(lambda x: x.reshape(-1, 2, 3), graph, "2*b, 3"),
        (X[:3],),
        "axis 0 of args[0] must have size 2*b, which is 2; found 3",
        "argument `x` is f32[3,3], exported as f32[2*b,3]",
    ),
    "no multiple by a constraint": (
        lambda graph: named(lambda x: x.reshape(-1, 2, 3), graph, "b, 3", "mod(b, 2) == 0"),
        (X[:3],),
        "sizes must satisfy mod(b, 2) == 0; found 1 and 0, where axis 0 of args[0] is b",
        "argument `x` is f32[3,3], exported as f32[b,3]",
    ),
    "too few": (
        lambda graph: named(lambda x: x[3:], graph, "b, 3", "b >= 4"),
        (X[:2],),
        "sizes must satisfy b >= 4; found 2 and 4, where axis 0 of args[0] is b",
        "argument `x` is f32[2,3], exported as f32[b,3]",
    ),
}


def said_by(error):
    """The pieces of what an assertion of TensorFlow's says, in one."""
    text = str(error).rpartition("assertion failed: ")[2].splitlines()[0]
    return re.sub(r"\] \[", "", text).replace("\\'", "'")


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("misfit", MISFITS)
def test_sizes_that_do_not_fit_are_told_by_argument(misfit, graph, tmp_path):
    made, args, text, eagerly = MISFITS[misfit]
    f = made(graph)
    with pytest.raises(PlaitError) as told:
        f(*args)
    assert eagerly in str(told.value) and told.value.fix
    taken = tf.nest.map_structure(lambda x: tf.TensorSpec((None, 3)), args)
    model = tf.Module()
    model.f = tf.function(f, input_signature=taken, autograph=False)
    good = tf.nest.map_structure(lambda x: X, args)
    flat = [np.asarray(x, np.float64) for x in tf.nest.flatten(good)]
    want = X[3:] if misfit == "too few" else np.prod(flat, 0).reshape(model.f(*good).shape)
    np.testing.assert_allclose(model.f(*good), want, rtol=1e-6)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(model, str(tmp_path), options=options)
    for there in (model, tf.saved_model.load(str(tmp_path))):
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            there.f(*args)
        assert text in said_by(e.value)


def test_the_greatest_of_rows_of_unknown_size():
    f = named(lambda x: lax.top_k(x, 2), False, "b, c", "c >= 2")
    graph = tf.function(f, input_signature=[tf.TensorSpec((None, None))], autograph=False)
    for shape in ((4, 6), (1, 2), (3, 5)):
        x = np.random.default_rng(1).permutation(shape[0] * shape[1]).reshape(shape).astype("f4")
        values, at = graph(x)
        np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :2])
        np.testing.assert_array_equal(at, np.argsort(-x, 1)[:, :2])
        _, (gradient,) = taped(lambda x: graph(x)[0], x)
        np.testing.assert_array_equal(gradient, (x >= np.asarray(values)[:, 1:]).astype("f4"))


def test_several_platforms():
    f = lambda x: lax.platform_dependent(  # noqa: E731
        x, cuda=lambda v: v * 0.0, cpu=lambda v: v * 3.0, default=lambda v: v - 1.0
    )
    for platforms in (None, ["cpu"], ["cuda", "cpu", "tpu"]):
        for shapes in (None, "b, ..."):
            converted = to_tf(f, platforms=platforms, polymorphic_shapes=shapes)
            out, (gradient,) = taped(tf.function(converted, input_signature=UNKNOWN if shapes
                                                 else None), X)  # fmt: skip
            np.testing.assert_array_equal(out, X * 3)
            np.testing.assert_array_equal(gradient, np.full_like(X, 3))
    with pytest.raises(tf.errors.OpError, match="CPU is not among the platforms required"):
        to_tf(f, platforms=["cuda"])(X)


# ---- the rows of what is required ----------------------------------------------------------


@pytest.mark.feature("E01")
def test_functions_of_nothing_are_traced_and_not_computed():
    f = tf.function(to_tf(lambda: lax.sin(1.0)))
    assert "stablehlo.sine" in modules(f.get_concrete_function())
    np.testing.assert_allclose(f(), np.sin(1.0), rtol=1e-6)
    g = tf.function(to_tf(lambda x: x * lax.cos(2.0)))
    assert "stablehlo.cosine" in modules(g.get_concrete_function(tf.constant(1.0)))


@pytest.mark.feature("E02")
def test_calls_inside():
    for f, want in (
        (lambda x: plait.jit(lambda y: plait.jit(lax.sin)(y) * 2)(x), 2 * np.sin(X)),
        (lambda x: x * 2 + 0 * plait.jit(lambda: lax.sin(1.0))(), 2 * X),
        (lambda x: plait.jit(lambda y: y + plait.jit(lambda: x.sum())())(x), X + X.sum()),
        (plait.jit(lambda x: plait.jit(lambda: pnp.cos(1.0))() + x), X + np.cos(F32(1))),
    ):
        for call in (to_tf(f), tf.function(to_tf(f))):
            np.testing.assert_allclose(call(X), want, rtol=1e-5, atol=1e-6)


INSIDE = {
    "jit": lambda f: plait.jit(f)(F32(1)),
    "grad": lambda f: plait.grad(f)(F32(1)),
    "jvp": lambda f: plait.jvp(f, (F32(1),), (F32(1),)),
    "linearize": lambda f: plait.linearize(f, F32(1)),
    "eval_shape": lambda f: plait.eval_shape(f, F32(1)),
    "checkpoint": lambda f: plait.jit(plait.checkpoint(f))(F32(1)),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), None), F32(1), None, length=2),
    "another conversion": lambda f: to_tf(f)(F32(1)),
}


@pytest.mark.feature("E03")
@pytest.mark.parametrize("argument", ["traced", "plain"])
@pytest.mark.parametrize("transformation", INSIDE)
def test_inside_a_transformation_is_an_error(transformation, argument):
    converted = to_tf(lambda x: x * 2)
    f = (lambda x: converted(x)) if argument == "traced" else (lambda x: x * converted(1.0).numpy())
    with pytest.raises(ValueError, match="is called inside a transformation") as e:
        INSIDE[transformation](f)
    assert isinstance(e.value, NotExportable) and "to_tf(plait.grad(f))" in e.value.fix
    np.testing.assert_array_equal(converted(3.0), 6)  # and outside it is none


@pytest.mark.feature("E04")
def test_integers_have_no_gradient_and_floats_beside_them_do():
    f = to_tf(lambda x, n, flag: (x * n, n + 1, flag))
    n, flag = np.int32(3), np.array([True, False])
    for call in (f, tf.function(f)):
        x, held = tf.constant(X), tf.constant(n)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, more, same = call(x, held, flag)
        np.testing.assert_array_equal(tape.gradient(y, x), np.full_like(X, 3))
        assert tape.gradient(y, held) is None
        np.testing.assert_array_equal(tape.gradient(more, x), np.zeros_like(X))
        assert more.numpy() == 4 and same.numpy().tolist() == [True, False]


@pytest.mark.feature("E04")
def test_types_without_values_are_booleans():
    """As results, of arguments, and between: the gradient of integers."""

    def gradients(x, n):
        return plait.grad(lambda x, n: (x * n).sum(), (0, 1), allow_int=True)(x, n)

    dx, dn = to_tf(gradients)(X, np.int32(2))
    np.testing.assert_array_equal(dx, np.full_like(X, 2))
    assert dn.dtype == tf.bool and dn.shape == ()
    nothing = np.zeros((2,), plait.float0)

    def both(x, t):
        assert t.dtype == plait.float0
        return x * 2, t

    (y, t), (dx, _) = (to_tf(both)(X, nothing), taped(to_tf(lambda x, n: gradients(x, n)[0] * x),
                                                      X, F32(2))[1])  # fmt: skip
    np.testing.assert_array_equal(y, 2 * X)
    assert t.dtype == tf.bool and t.shape == (2,)
    np.testing.assert_array_equal(dx, np.full_like(X, 2))


# ---- derivatives ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shapes", [None, (None, "b, ...")])
def test_gradients(way, shapes):
    f = WAYS[way](to_tf(layer, polymorphic_shapes=shapes))
    _, (db, dw, dx) = taped(lambda b, w, x: f({"b": [b], "w": w}, x), PARAMS["b"][0], W, X)
    for got, want in zip((db, dw), slope(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(dx, (1 - expected(X) ** 2) @ W.T, rtol=1e-5)


FOURTH = {
    "powers": lambda x: x**4,
    "calls": lambda x: plait.jit(lambda y: y * y)(plait.jit(lambda y: y * y)(x)),
    "scan": lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=3)[0],
}


@pytest.mark.parametrize("made", ["called", "in a function of TensorFlow's"])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", FOURTH)
def test_derivatives_of_every_order(name, graph, made):
    """Tapes are around the call: TensorFlow differentiates graphs that it made before."""
    f, x = to_tf(FOURTH[name], enable_graph=graph), tf.constant([1.0, 2.0])
    if made != "called":
        f = tf.function(f, autograph=False)
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = f(x)
            once = first.gradient(y, x)
        twice = second.gradient(once, x)
    thrice = third.gradient(twice, x)
    x = np.float32([1, 2])
    for got, want in ((once, 4 * x**3), (twice, 12 * x**2), (thrice, 24 * x)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


COMPLEX = {
    "cube": (lambda z: z * z * z, lambda z: z * z * z),
    "modulus": (pnp.abs, tf.abs),
    "real part": (lambda z: pnp.real(z) * 2, lambda z: tf.math.real(z) * 2),
    "imaginary part": (pnp.imag, tf.math.imag),
    "conjugate": (lambda z: pnp.conj(z) * (2 + 1j), lambda z: tf.math.conj(z) * (2 + 1j)),
    "mixed": (lambda z: pnp.exp(z) * pnp.abs(z), lambda z: tf.exp(z) * tf.cast(tf.abs(z), z.dtype)),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients_are_those_of_tensorflow(name):
    ours, theirs = COMPLEX[name]
    z = np.complex64([1 + 2j, -0.5 + 0.25j])
    weigh = lambda f: (
        lambda z: tf.math.real(  # noqa: E731
            tf.cast(f(z), tf.complex64) * (0.5 - 2j)
        )
    )
    got, want = (taped(weigh(f), z)[1][0] for f in (to_tf(ours), theirs))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_rule_of_the_user_is_kept():
    clipped = plait.custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda _, ct: (pnp.clip(ct, -1, 1),))
    _, (gradient,) = taped(to_tf(lambda x: 5 * clipped(x) + 3 * clipped(x * 2)), F32([1, 2]))
    np.testing.assert_array_equal(gradient, [3, 3])


def test_without_gradient_the_error_names_the_function():
    def served(x):
        return x * 2

    f = to_tf(served, with_gradient=False)
    np.testing.assert_array_equal(f(X), 2 * X)
    np.testing.assert_array_equal(tf.function(f)(X), 2 * X)
    with pytest.raises(LookupError, match=r"served was converted with to_tf\(..., with_gradient=F"):
        taped(f, X)


# ---- saved ---------------------------------------------------------------------------------

LOAD = """
import sys
import numpy as np
import tensorflow as tf

module, want = tf.saved_model.load(sys.argv[1]), np.load(sys.argv[2])
for n in (1, 4, 9):
    x = np.full((n, 3), 0.25, np.float32)
    with tf.GradientTape() as tape:
        y, count = module.serve(x, 2)
        total = tf.reduce_sum(y)
    assert count.numpy() == n * 2 and y.shape == (n, 2)
    np.testing.assert_allclose(y, want[f"y{n}"], rtol=1e-5)
    b, w = tape.gradient(total, [module.params["b"][0], module.params["w"]])
    np.testing.assert_allclose(b, want[f"b{n}"], rtol=1e-5)
    np.testing.assert_allclose(w, want[f"w{n}"], rtol=1e-5)
try:
    module.without(np.ones((2, 3), np.float32))
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(module.without(want["y4"][:, :1] * np.ones((4, 3), np.float32)
                                             + module.params["b"][0][0]))
    tape.gradient(total, module.params["b"][0])
except LookupError as e:
    assert "layer was converted with to_tf(..., with_gradient=False)" in str(e), e
else:
    raise AssertionError("there is no gradient")
assert not {m.partition(".")[0] for m in sys.modules} & {"plait", "plait_export", "jaxlib"}
print("done")
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("platforms", [None, ("tpu", "cpu")])
def test_saved_and_loaded_without_plait(tmp_path, platforms):
    module = tf.Module()
    module.params = tf.nest.map_structure(tf.Variable, PARAMS)
    served = lambda p, x, n: (layer(p, x)["y"], x.shape[0] * n)  # noqa: E731
    f = to_tf(served, polymorphic_shapes=(None, "batch, ...", None), platforms=platforms)
    module.serve = tf.function(
        lambda x, n: f(module.params, x, n),
        input_signature=[*UNKNOWN, tf.TensorSpec((), tf.int32)],
    )
    g = to_tf(layer, polymorphic_shapes=(None, "b, 3"), with_gradient=False, platforms=platforms)
    module.without = tf.function(lambda x: g(module.params, x)["y"], input_signature=UNKNOWN)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path / "saved"), options=options)
    want = {}
    for n in (1, 4, 9):
        x = np.full((n, 3), 0.25, F32)
        want |= {f"y{n}": expected(x), f"b{n}": slope(x)[0], f"w{n}": slope(x)[1]}
    np.savez(tmp_path / "want.npz", **want)
    command = [sys.executable, "-c", LOAD, str(tmp_path / "saved"), str(tmp_path / "want.npz")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr[-3000:]


def test_an_artifact_as_a_saved_model(tmp_path):
    """Written by the command, and differentiated by the derivative that it holds."""
    file, saved = tmp_path / "f.plait", str(tmp_path / "saved")
    types = plait.export.symbolic_args_specs((PARAMS, np.ones((2, 3), F32)), (None, "b, 3"))
    artifact = plait.export.export(layer)(*types)
    file.write_bytes(artifact.serialize(vjp_order=1))
    command = [sys.executable, "-m", "plait_export", "to-tf", str(file), saved]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    module = tf.saved_model.load(saved)
    leaves, names = (
        plait.tree.leaves((PARAMS, None)),
        sorted(module.signatures["serve"].structured_input_signature[1]),
    )
    assert len(names) == len(leaves) + 1 and all(n.isidentifier() for n in names)
    for n in (1, 4):
        x = np.full((n, 3), 0.25, F32)
        variables = [tf.Variable(leaf) for leaf in leaves]
        with tf.GradientTape() as tape:
            (y,) = module.serve(*variables, x).values()
            total = tf.reduce_sum(y)
        np.testing.assert_allclose(y, expected(x), rtol=1e-5)
        for got, want in zip(tape.gradient(total, variables), slope(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_an_artifact_that_calls_libraries_is_no_saved_model(tmp_path):
    file = tmp_path / "f.plait"
    artifact = plait.export.export(plait.numpy.linalg.cholesky)(np.eye(3, dtype=F32))
    file.write_bytes(artifact.serialize())
    command = [sys.executable, "-m", "plait_export", "to-tf", str(file), str(tmp_path / "saved")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "lapack_spotrf_ffi" in done.stderr
    assert "libraries=False" in done.stderr and "Traceback" not in done.stderr


# ---- what is refused -----------------------------------------------------------------------

IDENTITY = lambda x: x  # noqa: E731
MISTAKES = {
    "an unknown size": (
        lambda: tf.function(to_tf(IDENTITY), input_signature=UNKNOWN)(X),
        r"args\[0\] has the shape \(None, 3\), and polymorphic_shapes gives no name for its axis 0",
    ),
    "an unknown size that is said to be a number": (
        lambda: tf.function(to_tf(IDENTITY, polymorphic_shapes="4, _"), input_signature=UNKNOWN)(X),
        r"args\[0\] has the shape \(None, 3\), and polymorphic_shapes gives no name for its axis 0",
    ),
    "an unknown rank": (
        lambda: tf.function(to_tf(IDENTITY), input_signature=[tf.TensorSpec(None)])(X),
        r"args\[0\] has a shape of which TensorFlow does not know how many axes",
    ),
    "another number": (
        lambda: to_tf(lambda p: p["a"], polymorphic_shapes="b, 4")({"a": X}),
        r"args\[0\]\['a'\] has the shape \(4, 3\), and polymorphic_shapes says 'b, 4'",
    ),
    "another rank": (
        lambda: to_tf(IDENTITY, polymorphic_shapes="b")(X),
        r"args\[0\] has the shape \(4, 3\), and polymorphic_shapes says 'b'",
    ),
    "too many placeholders": (
        lambda: to_tf(IDENTITY, polymorphic_shapes="b, _, _")(X),
        r"polymorphic_shapes of args\[0\]: 'b, _, _' has 3 sizes, and \(4, 3\) has 2",
    ),
    "a text that is not a shape": (
        lambda: to_tf(IDENTITY, polymorphic_shapes="b +, 3")(X),
        r"polymorphic_shapes of args\[0\]",
    ),
    "another tree of shapes": (
        lambda: to_tf(IDENTITY, polymorphic_shapes={"a": "b"})(X),
        "polymorphic_shapes does not fit",
    ),
    "text": (
        lambda: to_tf(lambda x, *, y: x)(X, y=tf.constant(["a"])),
        r"kwargs\['y'\] is a tensor of string, which Plait has not",
    ),
    "an object": (lambda: to_tf(IDENTITY)(object()), r"args\[0\] is <object .* no tensor can be"),
    "a key": (
        lambda: to_tf(lambda n: plait.random.key(n))(1),
        "TensorFlow has no key<fry>, of which the result is",
    ),
    "a callback": (
        lambda: to_tf(lambda x: plait.pure_callback(np.sin, x, x))(X),
        "calls Python or acts on the world",
    ),
    "a function of a library": (
        lambda: to_tf(lambda x: pnp.linalg.eigvals(x))(X[:3]),
        "calls functions outside StableHLO: lapack_sgeev_ffi",
    ),
    "no function": (lambda: to_tf(3), "to_tf needs a function, not 3"),
    "no platform": (lambda: to_tf(IDENTITY, platforms=["gpu"]), "there is no platform 'gpu'"),
    "a shape that does not fit another": (lambda: to_tf(lambda x, y: x @ y)(X, X), "f32\\[4,3\\]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_by_argument_and_shape(mistake):
    run, text = MISTAKES[mistake]
    with pytest.raises(PlaitError, match=text) as e:
        run()
    assert e.value.fix and "test_to_tf.py" in str(e.value)
