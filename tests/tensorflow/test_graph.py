"""Functions as graphs of TensorFlow's ordinary operations.

Values are compared with numpy, and with what XLA computes of the function itself; derivatives with
Plait's, which do not go by StableHLO.

Invariant: every operation of StableHLO that is read back has a rule here, or is refused by name.
"""

import itertools
import os
import runpy
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import lax, nn
from plait import numpy as pnp
from plait._core.primitive import primitives
from plait.ext.errors import PlaitError
from plait.testing.references import all_references
from plait.testing.trials import Job
from plait_export import NotExportable, reader
from plait_export.portable import artifact_of
from plait_export.tensorflow import graph, to_tf
from plait_numpy.ext import attention, linalg, special

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

F32, I32 = np.float32, np.int32
R = np.random.default_rng(0)
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)


def normal(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(F32)


def drawn(f, **how):
    """A function as a graph of TensorFlow's."""
    return tf.function(to_tf(f, enable_graph=True, **how), autograph=False)


def close(got, want, tol=1e-5, **how):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=tol, atol=tol, **how)


def operations(concrete) -> set[str]:
    """Names of the operations in a graph, and in its functions."""
    whole = concrete.graph.as_graph_def()
    nodes = [*whole.node, *(n for f in whole.library.function for n in f.node_def)]
    return {n.op for n in nodes}


def of_text(module):
    """A module that is written by hand, as a function of TensorFlow's values."""
    functions = reader.functions_of(artifact_of(module.encode(), False), ("cpu",))
    return lambda *xs: graph.Walk(functions, "f", ["x", "y"]).main(xs)


# ---- every operation -----------------------------------------------------------------------


def test_what_is_read_back_has_a_rule_or_is_refused_by_name():
    known = {*graph.GRAPHS, *graph.REFUSED}
    assert {*reader.RULES, *reader.REFUSED} <= known
    assert not {*graph.GRAPHS} & {*graph.REFUSED}
    assert all(graph.REFUSED.values())


FAMILIES = attention, linalg, special  # imported, they bring their primitives
PRIMITIVES = primitives()
NOT_EXPORTED = frozenset(
    [f"core.{n}" for n in (
        "psum", "pmax", "pmin", "all_gather", "psum_scatter", "ppermute", "all_to_all",
        "axis_index", "pvary", "host", "check", "foreign",
    )]
    + ["linalg.geqp3", "linalg.ormqr"]
)  # fmt: skip
"""Of several devices, of Python, what is collected before, and kernels without a form in elementary
operations."""
REFUSED = {
    "core.rng_bit_generator": "its generators have no words there",
    **dict.fromkeys(
        [f"linalg.{n}" for n in ("schur", "sylvester", "sqrtm", "tridiagonal", "hessenberg", "eig",
                                 "tridiagonal_solve")],
        "calls functions outside StableHLO",
    ),
}  # fmt: skip
SLOW = frozenset(
    [f"special.{n}" for n in (
        "igamma", "igammac", "bessel_i0e", "bessel_i1e", "hyp2f1", "hyp1f1", "igamma_grad_a",
        "random_gamma_grad", "regularized_incomplete_beta", "random_gamma", "expn", "wofz",
        "bessel_j", "lbeta", "polygamma", "zeta", "sici", "fresnel", "owens_t",
        "dawsn", "erfcx", "log_ndtr", "ndtri", "expi",
    )]
    + [f"linalg.{n}" for n in ("lstsq", "pinv", "svd", "eigh")]
)  # fmt: skip
"""Graphs of thousands of operations, of kinds that others have too."""
CASES = {
    name: known
    for name, known in all_references().items()
    if name in PRIMITIVES and name not in NOT_EXPORTED | SLOW
}


def test_every_reference_is_of_a_primitive_that_is_tried():
    """Primitives of all packages are here, those of the array library too."""
    missing = all_references().keys() - PRIMITIVES.keys()
    assert not missing


TINY = np.finfo(F32).tiny


def unlike(job, args):
    """Where TensorFlow computes otherwise: beside what is said, at elements of no size."""
    if job.prim.name == "core.lgamma":  # of what is flushed to zero
        return np.abs(args[0]) < TINY
    if job.prim.name in ("core.log", "core.rsqrt", "core.log1p"):
        x = args[0].astype(np.complex64)
        with np.errstate(invalid="ignore"):
            return (np.abs(x) < TINY) | (x.real < 0)
    if job.prim.name == "core.logistic" and args[0].dtype.kind == "c":
        return ~np.isfinite(args[0])
    if job.prim.name == "core.expm1" and args[0].dtype.kind == "c":
        return ~np.isfinite(args[0])
    return None


@pytest.mark.parametrize("name", CASES)
def test_each_operation_computes_what_xla_computes(name):
    prim, known = PRIMITIVES[name], CASES[name]
    for sample in itertools.islice(known.samples(prim), 2):
        job, xs = Job(prim, known, sample), [np.asarray(x) for x in sample.args]
        if any(x.dtype.name in ("int4", "uint4", "int2", "uint2") for x in xs):
            continue
        f = lambda *xs, job=job: job(*xs)  # noqa: E731
        if name in REFUSED:
            with pytest.raises(NotExportable, match=REFUSED[name]):
                drawn(f)(*xs)
            continue
        got = tf.nest.flatten(drawn(f)(*xs))
        for y, want in zip(got, plait.tree.leaves(plait.jit(f)(*xs)), strict=True):
            y, want, others = np.asarray(y), np.asarray(want), unlike(job, xs)
            if others is not None:
                y, want = y[~others], want[~others]
            close(y, want, 1e-5 if want.dtype.itemsize >= 4 else 1e-2, err_msg=repr(job))


POLYMORPHIC = runpy.run_path(str(Path(__file__).parents[1] / "export" / "test_polymorphic.py"))
WITHOUT = (
    "special functions", "special functions of physics", "factorisations",  # graphs that are large
    "reductions to a form", "solutions",  # of which some call libraries
    "derivatives of the incomplete gamma function", "gamma",
)  # fmt: skip
SYMBOLIC = [n for n in POLYMORPHIC["CASES"] if n not in WITHOUT]


@pytest.mark.feature("E05", "E06", "E07")
@pytest.mark.parametrize("name", SYMBOLIC)
def test_every_primitive_for_sizes_that_are_not_known(name):
    case, rng = POLYMORPHIC["CASES"][name], np.random.default_rng(0)
    arrays, flat = POLYMORPHIC["arrays_for"], POLYMORPHIC["flat"]
    how = dict(polymorphic_shapes=tuple(case.shapes), polymorphic_constraints=case.constraints)
    kinds = [x.dtype for x in arrays(case, case.sizes[0], rng)]
    shapes = [[int(n) if n.strip().isdigit() else None for n in s.split(",") if n.strip()]
              for s in case.shapes]  # fmt: skip
    taken = [tf.TensorSpec(s, k) for s, k in zip(shapes, kinds, strict=True)]
    f = tf.function(to_tf(case.f, enable_graph=True, **how), input_signature=taken, autograph=False)
    if name == "the device's generator":
        with pytest.raises(NotExportable, match="its generators have no words there"):
            f.get_concrete_function()
        return
    for sizes in case.sizes:
        xs = arrays(case, sizes, rng)
        for got, want in zip(flat(f(*xs)), flat(case.reference(*xs)), strict=True):
            want = np.asarray(want)
            close(got, want.astype(got.dtype.as_numpy_dtype), 2e-5, err_msg=str(sizes))
    assert "XlaCallModule" not in operations(f.get_concrete_function())


EVERY = np.array([*range(-128, 128)], np.int8)
INTEGERS = {
    "quotients": lax.div,
    "remainders": lax.rem,
    "shifts to the left": lax.shift_left,
    "shifts of the sign": lax.shift_right_arithmetic,
    "shifts of bits": lax.shift_right_logical,
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", INTEGERS)
def test_all_pairs_of_small_integers(name, dtype):
    x, y = (v.ravel().view(dtype) for v in np.meshgrid(EVERY, EVERY))
    np.testing.assert_array_equal(drawn(INTEGERS[name])(x, y), plait.jit(INTEGERS[name])(x, y))


@pytest.mark.parametrize("kind, dtype", [("i8", np.int8), ("ui8", np.uint8)])
def test_all_powers_of_small_integers(kind, dtype):
    module = f"""
      func.func public @main(%x: tensor<65536x{kind}>, %y: tensor<65536x{kind}>)
          -> tensor<65536x{kind}> {{
        %0 = stablehlo.power %x, %y : tensor<65536x{kind}>
        return %0 : tensor<65536x{kind}>
      }}"""
    x, y = (v.ravel().view(dtype) for v in np.meshgrid(EVERY, EVERY))
    below = {1: lambda n: 1, -1: lambda n: 1 - 2 * (n % 2)}
    each = [
        pow(a, b, 256) if b >= 0 else below.get(a, lambda n: 0)(b)
        for a, b in zip(x.tolist(), y.tolist())
    ]
    want = np.array(each).astype(np.uint8).view(dtype)
    np.testing.assert_array_equal(tf.function(of_text(module))(x, y)[0], want)


@pytest.mark.parametrize("to", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_floats_become_the_nearest_integers(to):
    x = F32([np.nan, np.inf, -np.inf, 1e30, -1e30, 2**31, -(2**31), 2**63, 300.7, -300.7, -0.5, 0])
    info = np.iinfo(to)
    want = [
        0
        if np.isnan(v)
        else info.max
        if v >= float(info.max)
        else info.min
        if v <= info.min
        else int(v)
        for v in x
    ]
    got = drawn(lambda x: lax.convert_element_type(x, to))(x)
    np.testing.assert_array_equal(got, np.array(want, to))


def test_random_bits_are_the_same_bits():
    def draw(seed):
        a, b = plait.random.split(plait.random.key(seed))
        return (
            plait.random.bits(a, (5,)),
            plait.random.randint(b, (7,), 0, 90),
            plait.random.uniform(a, (3,)),
        )

    for got, want in zip(drawn(draw)(I32(3)), draw(I32(3)), strict=True):
        np.testing.assert_array_equal(got, want)


# ---- functions in regions ------------------------------------------------------------------


def by_loop(x, combine, start, axis):
    rows, out = np.moveaxis(x, axis, 0), np.full(np.delete(x.shape, axis), start, x.dtype)
    for row in rows:
        out = combine(out, row)
    return out


REDUCED = """
  func.func public @main(%x: tensor<SIZExf32>) -> tensor<3xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.multiply %a, %b : tensor<f32>
      %q = stablehlo.add %a, %b : tensor<f32>
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<SIZExf32>, tensor<f32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }"""


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("known", [True, False])
def test_a_reduction_by_any_function(n, known):
    x = normal(n, 3)
    f = of_text(REDUCED.replace("SIZE", f"{n}x3" if known else "?x3"))
    g = tf.function(f, input_signature=[tf.TensorSpec((n if known else None, 3), tf.float32)])
    want = by_loop(x, lambda a, b: a + b + a * b, 0, 0)
    np.testing.assert_allclose(g(x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("apart", [1, 2])
def test_windows_of_any_size(window, apart):
    x = normal(15)
    far = apart * (window - 1) + 1
    body = lambda a, b: a * b + a + b  # noqa: E731
    f = lambda x: lax.reduce_window(x, F32(0), body, (window,), (2,), ((1, 2),),  # noqa: E731
                                    window_dilation=(apart,))  # fmt: skip
    wide = np.concatenate([[0], x, [0, 0]]).astype(F32)
    want = [by_loop(wide[i : i + far : apart], body, 0, 0) for i in range(0, 18 - far + 1, 2)]
    np.testing.assert_allclose(drawn(f)(x), want, rtol=2e-5, atol=1e-6)


def test_a_sort_by_any_comparator():
    x = R.integers(-20, 20, (3, 9)).astype(I32)
    module = """
      func.func public @main(%x: tensor<3x9xi32>) -> tensor<3x9xi32> {
        %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %n = stablehlo.constant dense<5> : tensor<i32>
          %c = stablehlo.remainder %a, %n : tensor<i32>
          %d = stablehlo.remainder %b, %n : tensor<i32>
          %p = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }) : (tensor<3x9xi32>) -> tensor<3x9xi32>
        return %0 : tensor<3x9xi32>
      }"""
    want = [sorted(row, key=lambda v: np.fmod(v, 5)) for row in x]
    np.testing.assert_array_equal(tf.function(of_text(module))(x)[0], want)


SCATTERED = {
    "set": np.array([9, 1, 7, 3], F32),
    "add": np.array([1 + 8, 1, 2 + 7, 3], F32),
    "multiply": np.array([8, 1, 14, 3], F32),
    "min": np.array([1, 1, 2, 3], F32),
    "max": np.array([8, 1, 7, 3], F32),
}


@pytest.mark.parametrize("how", SCATTERED)
def test_what_is_written_outside_is_dropped(how):
    value = F32([9, 7, 5] if how == "set" else [8, 7, 5])
    f = lambda x, i, v: getattr(x.at[i], how)(v, mode="drop")  # noqa: E731
    found = drawn(f)(F32([1, 1, 2, 3]), I32([0, 2, 4]), value)
    np.testing.assert_array_equal(found, SCATTERED[how])


# ---- derivatives ---------------------------------------------------------------------------

K, GROUPS, W1, W2 = normal(3, 3, 3, 4), normal(3, 3, 1, 6), normal(3, 5), normal(5, 2)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def recurrent(xs):
    def step(state, x):
        state = pnp.tanh(x @ W1 @ W2 + state)
        return state, state * x[:, :2]

    return lax.scan(step, pnp.zeros((xs.shape[1], 2)), xs)[1]


def spread(x):
    return lax.conv_general_dilated(
        x, GROUPS, (1, 2), ((1, -1), (2, 0)), lhs_dilation=(2, 1), rhs_dilation=(1, 2),
        dimension_numbers=LAYOUT, feature_group_count=3,
    )  # fmt: skip


PROGRAMS = {
    "layers": (lambda x: pnp.tanh(x @ W1) @ W2, X, "b, 3"),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, K, (2, 2), "SAME", dimension_numbers=LAYOUT) ** 2,
        normal(2, 8, 8, 3), "b, 8, 8, 3",
    ),
    "convolution of kernels": (
        lambda k: lax.conv_general_dilated(
            normal(2, 6, 6, 3), k, (2, 2), "SAME", dimension_numbers=LAYOUT
        ) ** 2,
        K, None,
    ),
    "convolution in groups": (lambda x: spread(x) ** 2, normal(2, 6, 7, 3), "b, 6, 7, 3"),
    "greatest of windows": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2,
        normal(2, 4, 4, 3), None,
    ),
    "means of windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "SAME") ** 2,
                         normal(9), None),
    "recurrent": (recurrent, normal(5, 2, 3), "5, b, 3"),
    "recurrent, for any time": (recurrent, normal(5, 2, 3), "t, b, 3"),
    "attention": (lambda q: nn.softmax(pnp.einsum("btd,bsd->bts", q, q), -1) @ q,
                  normal(2, 5, 4) / 2, "b, 5, 4"),
    "sort": (lambda x: pnp.sort(x, 0) ** 3, normal(4, 3), "b, 3"),
    "top k": (lambda x: lax.top_k(x, 2)[0] ** 2, normal(4, 3), None),
    "running sum": (lambda x: pnp.cumsum(x, 0) ** 2, normal(4, 3), "b, 3"),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda x: x**2, lambda x: -(x**3), x),
                 normal(3), None),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * c + x, x), normal(3) / 10, None),
    "scatter": (lambda x: x.at[np.array([0, 2])].multiply(x[:2]) ** 2, normal(4, 3), None),
    "scatter of the least": (lambda x: x.at[np.array([0, 2])].min(x[1:3]) ** 2, normal(4, 3), None),
    "fourier": (lambda x: pnp.abs(pnp.fft.fft(x)) ** 2, normal(8), None),
    "gelu": (lambda x: nn.gelu(x, approximate=False), normal(4, 3), "b, 3"),
    "a kink": (lambda x: nn.relu(x) ** 2 + nn.relu(x), F32([-1, 0, 2]), None),
    "stopped": (lambda x: x**2 * lax.stop_gradient(x), normal(3), None),
    "gamma": (lambda x: lax.lgamma(x * x + 1), normal(3), None),
    "error functions": (lambda x: lax.erf_inv(x / 10) + lax.erf(x), normal(3), None),
    "cholesky": (
        lambda x: pnp.linalg.cholesky(x @ x.T + 3 * np.eye(3, dtype=F32)), normal(3, 3), None
    ),
    "solve": (
        lambda x: pnp.linalg.solve(x @ x.T + 3 * np.eye(3, dtype=F32), x), normal(3, 3), None
    ),
}  # fmt: skip


def twice(f, x, c, d):
    """(result, first, second derivative) of TensorFlow's, in the directions c and d."""
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            y = f(x)
            total = tf.reduce_sum(y * c)
        once = first.gradient(total, x)
        along = tf.reduce_sum(once * d)
    return y, once, second.gradient(along, x, unconnected_gradients="zero")


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_two_derivatives(name):
    f, x, shapes = PROGRAMS[name]
    x = pnp.asarray(x)
    want = np.asarray(f(x))
    c, d = normal(*want.shape), normal(*x.shape)
    weighed = lambda x: (f(x) * c).sum()  # noqa: E731
    once = plait.grad(weighed)(x)
    again = plait.grad(lambda x: (plait.grad(weighed)(x) * d).sum())(x)
    run = tf.function(twice, autograph=False)
    g = to_tf(f, enable_graph=True, polymorphic_shapes=shapes)
    for got, value in zip(run(g, np.asarray(x), c, d), (want, once, again)):
        scale = 1 + np.abs(np.asarray(value)).max()
        np.testing.assert_allclose(got / scale, value / scale, atol=1e-5, rtol=0)


def test_rules_of_users_are_the_derivatives_of_every_order():
    @plait.custom_vjp
    def doubled(x):
        return x * x

    def back(x, ct):
        return (3 * doubled(x) * ct,)

    doubled.defvjp(lambda x: (x * x, x), back)
    x = F32([1, 2, 3])
    _, once, again = twice(to_tf(doubled, enable_graph=True), x, np.ones(3, F32), np.ones(3, F32))
    np.testing.assert_allclose(once, 3 * x**2)
    np.testing.assert_allclose(again, 9 * x**2)


def test_without_gradient_the_error_names_the_function():
    f = to_tf(lambda x: x * 2, with_gradient=False, enable_graph=True)
    with pytest.raises(LookupError, match=r"lambda was converted with to_tf\(..., with_gradient=F"):
        twice(f, X, 1.0, 1.0)


# ---- what the graph is ---------------------------------------------------------------------


@pytest.mark.feature("E01")
def test_functions_of_nothing_are_computed_there():
    found = operations(drawn(lambda: pnp.sin(1.0)).get_concrete_function())
    assert "Sin" in found and "XlaCallModule" not in found


@pytest.mark.feature("E02")
def test_functions_in_functions():
    inner = plait.jit(lambda x: pnp.tanh(x) * 2)
    f = drawn(lambda x: inner(inner(inner(x))) + plait.jit(lambda: pnp.ones(3))())
    want = X
    for _ in range(3):
        want = np.tanh(want) * 2
    np.testing.assert_allclose(f(X), want + 1, rtol=1e-6)


def test_what_nobody_can_use_is_refused(monkeypatch):
    monkeypatch.setattr(graph.walking, "_MOST", 1000)
    once = plait.jit(lambda x: x + 1)
    for _ in range(12):
        once = plait.jit(lambda x, f=once: f(f(x)))
    with pytest.raises(NotExportable, match="more than 1000 operations, as functions call each"):
        drawn(once)(X)


def test_eagerly_and_compiled():
    f, want = PROGRAMS["attention"][0], np.asarray(PROGRAMS["attention"][0](normal(2, 5, 4)))
    g = to_tf(f, enable_graph=True)
    np.testing.assert_allclose(g(normal(2, 5, 4)), want, rtol=1e-5, atol=1e-6)
    compiled = tf.function(g, jit_compile=True, autograph=False)
    np.testing.assert_allclose(compiled(normal(2, 5, 4)), want, rtol=1e-5, atol=1e-6)


def test_complex_derivatives_are_those_of_tensorflow():
    z = np.complex64([1 + 2j, -0.5 + 0.25j])
    weigh = lambda f: lambda z: tf.math.real(tf.reduce_sum(f(z) * (0.5 - 2j)))  # noqa: E731

    def both(f):
        x = tf.constant(z)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = weigh(f)(x)
            once = first.gradient(y, x)
            part = tf.math.real(tf.reduce_sum(once * (1 + 1j)))
        return once, second.gradient(part, x)

    ours = to_tf(lambda z: z * z * pnp.exp(z) * pnp.conj(z), enable_graph=True)
    for got, want in zip(both(ours), both(lambda z: z * z * tf.exp(z) * tf.math.conj(z))):
        np.testing.assert_allclose(got, want, rtol=1e-5)


# ---- what is refused -----------------------------------------------------------------------


def test_sizes_that_do_not_fit_are_told_by_argument_when_it_runs():
    f = to_tf(lambda x, y: x + y["w"], polymorphic_shapes=("b, 3", "b, 3"), enable_graph=True)
    g = tf.function(f, input_signature=[tf.TensorSpec((None, 3)), {"w": tf.TensorSpec((None, 3))}])
    np.testing.assert_array_equal(g(X, {"w": X}), 2 * X)
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        g(X, {"w": X[:2]})
    assert r"lambda:] [axis 0 of args[1][\'w\'] must have size b" in str(e.value)


MISTAKES = {
    "sizes that do not fit": (
        lambda: drawn(lambda x, y: x + y, polymorphic_shapes="b, 3")(X, X[:2]),
        r"argument `y` is f32\[2,3\], exported as f32\[b,3\]",
    ),
    "several platforms": (
        lambda: to_tf(lambda x: x, enable_graph=True, platforms=("cpu", "tpu")),
        "a graph has branches of one platform, and platforms says cpu, tpu",
    ),
    "another generator": (
        lambda: drawn(lambda x: lax.rng_bit_generator(x, (3,))[1])(np.zeros(2, np.uint64)),
        "lambda has no graph of TensorFlow's: stablehlo.rng_bit_generator: its generators",
    ),
    "numbers of four bits": (
        lambda: drawn(lambda x: lax.convert_element_type(x, "int4") * np.int8(1).astype("int4"))(
            np.int8([1])
        ),
        r"stablehlo.\w+ of int4, of which it has conversions only",
    ),
    "a library": (
        lambda: drawn(lambda x: pnp.linalg.eigvals(x))(X[:3]),
        "calls functions outside StableHLO: lapack_sgeev_ffi",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_say_what_and_what_instead(mistake):
    run, text = MISTAKES[mistake]
    with pytest.raises(PlaitError, match=text) as e:
        run()
    assert e.value.fix
