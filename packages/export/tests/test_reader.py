"""StableHLO read back: a module as a Program, and what is refused.

Judges are numpy, loops of Python, and the modules themselves, which XLA runs: what is read is
compiled anew, from the operations of Plait that it was read as.
"""

import importlib
import itertools
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.ext import ops
from plait.ext.ir import Primitive, evaluate, inline_calls
from plait.ext.ops.random import DYNAMIC_GENERATOR
from plait.ext.sizes import Scope
from plait.ext.types import Aval, Opaque
from plait.ext.values import as_value
from plait.testing.references import all_references
from plait.testing.trials import Job
from plait_export import (
    NotExportable,
    NotReadable,
    deserialize,
    export,
    import_jax,
    symbolic_args_specs,
)
from plait_export import naming as named
from plait_export.artifact import Exported
from plait_export.portable import artifact_of
from plait_export.reader import REFUSED, RULES, Reading
from plait_numpy.ext import attention, linalg, special

F32, I32 = np.float32, np.int32
GOLDEN = Path(__file__).with_name("golden")
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)


def of_text(text, ins, outs):
    """A module, written by hand, as what `export` returns; nothing is said of its rules."""
    return of_code(text.encode(), ins, outs)


def of_code(code, ins, outs):
    avals = [[Aval(shape, np.dtype(kind)) for shape, kind in side] for side in (ins, outs)]
    trees = [plait.tree.structure(((0,) * len(ins), {})), plait.tree.structure((0,) * len(outs))]
    artifact = artifact_of(code, False)
    return Exported("f", avals[0], trees[0], avals[1], trees[1], ("cpu",), None, artifact, (),
                    False, custom_rules=())  # fmt: skip


def claiming(text):
    """A module whose function gives back what it is given, and says that it is this operation."""
    return of_text(
        f"""func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32>
              attributes {{plait.operation = "{text}"}} {{
          return %x : tensor<4xf32>
        }}
        func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %y = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
          return %y : tensor<4xf32>
        }}""",
        [V], [V],
    )  # fmt: skip


def run(exported, *xs):
    """What the program that was read back computes; compiled."""
    program = exported.read_for([as_value(x).aval.strong() for x in xs])
    return [np.asarray(y) for y in plait.jit(lambda *vs: evaluate(program, vs))(*xs)]


def operations(program):
    """Names of the operations, in sub-programs too."""
    found = []
    for e in inline_calls(program).eqns:
        found.append(e.prim.name)
        for p in plait.ext.ir.programs_in(e.params):
            found += operations(p)
    return found


# ---- every operation -----------------------------------------------------------------------

FAMILIES = [importlib.import_module(f"{ops.__name__}.{m.name}")
            for m in pkgutil.iter_modules(ops.__path__)]  # fmt: skip
PRIMITIVES = {
    p.name: p
    for family in (*FAMILIES, linalg, special, attention)
    for p in vars(family).values()
    if isinstance(p, Primitive)
}

NOT_EXPORTED = {
    **dict.fromkeys(
        [f"core.{n}" for n in ("psum", "pmax", "pmin", "all_gather", "psum_scatter", "ppermute",
                               "all_to_all", "axis_index", "pvary")],
        "it is for several devices",
    ),
    "core.host": "it calls Python",
    "core.check": "it is refused, unless it is collected",
    "core.foreign": "it calls a function that nobody knows",
    "linalg.geqp3": "nobody promises that its kernel stays",
    **dict.fromkeys(
        ["core.platform_index", "core.wrap", "core.unwrap", "core.dim", "core.random_clone",
         "core.squeeze", "core.convert", "core.reshape", "core.iota", "core.barrier",
         "core.once"],
        "of what is the same, or known, nothing is left",
    ),
}  # fmt: skip
SAID_OTHERWISE = {
    **dict.fromkeys(
        [f"core.random_{n}" for n in ("seed", "split", "fold_in", "bits")],
        "keys are numbers in a module",
    ),
    **dict.fromkeys(
        ["core.scan", "core.map_axes", "core.call", "core.composite", "core.cond", "core.while"],
        "it has programs: loops are read as loops, calls as what they call",
    ),
    **dict.fromkeys(["core.add", "core.mul", "core.maximum", "core.minimum", "core.sign",
                     "core.clamp"], "of booleans it is logic"),
    **dict.fromkeys(["core.div", "core.rem"], "integers are divided by 0 in words of its own"),
    **dict.fromkeys(["core.broadcast_in_dim", "core.gather", "core.conj", "core.clz"],
                    "StableHLO says it with several words"),
}  # fmt: skip
CASES = {
    name: known
    for name, known in all_references().items()
    if name in PRIMITIVES and name not in NOT_EXPORTED
}


def test_every_reference_is_of_a_primitive_that_is_tried():
    """Primitives of all packages are here, those of the array library too."""
    missing = all_references().keys() - PRIMITIVES.keys()
    assert not missing


SLOW = frozenset(
    [f"special.{n}" for n in (
        "hyp2f1", "hyp1f1", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad",
        "regularized_incomplete_beta", "random_gamma", "expn", "expi", "wofz", "bessel_j", "lbeta",
        "polygamma", "ndtri", "fresnel", "zeta", "sici", "owens_t", "dawsn", "erfcx", "log_ndtr",
    )]
    + [f"linalg.{n}" for n in ("sqrtm", "sylvester", "lstsq", "pinv")]
    + ["nn.attention_tangent", "nn.attention_cotangent"]
)  # fmt: skip
"""Of these it is enough that they are themselves, with the same parameters: to compile them twice
takes long."""


def samples(name, most):
    prim, known = PRIMITIVES[name], CASES[name]
    for sample in itertools.islice(known.samples(prim), most):
        yield Job(prim, known, sample), [np.asarray(x) for x in sample.args]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_each_operation_is_itself_again(name):
    for job, xs in samples(name, 2):
        exported = export(lambda *xs, job=job: job(*xs))(*xs)
        found = operations(exported.program())
        if name not in SAID_OTHERWISE:
            assert name in found, (job, found)
            beside = {*found} - {name}
            plain = {"core.broadcast_in_dim", "core.convert", "core.iota", "core.reshape"}
            if name == "core.conv_general":  # padding that the compiler gets wrong inside of it
                plain |= {"core.pad", "core.barrier"}
            assert beside <= plain, (job, beside)
        if name in SLOW:
            (e,) = [e for e in inline_calls(exported.program()).eqns if e.prim.name == name]
            assert e.params == job.sample.params
            continue
        for got, want in zip(run(exported, *xs), plait.tree.leaves(exported.call(*xs)),
                             strict=True):  # fmt: skip
            want = np.asarray(want)
            assert got.dtype == want.dtype and got.shape == want.shape
            kind = np.complex128 if want.dtype.kind == "c" else np.float64
            close = dict(rtol=1e-5, atol=1e-6, err_msg=repr(job))
            np.testing.assert_allclose(got.astype(kind), want.astype(kind), **close)


def test_the_table_of_names_is_of_operations_of_core():
    assert {p.namespace for p in named.PLAIN} == {"core"}


def names_written():
    """Names of operations that anything in core writes, by the texts of its sources."""
    core = Path(plait.__file__).parent
    found = set()
    to_the_compiler = core / "_xla" / "apart.py"  # rewrites modules that are never exported
    for path in {*core.rglob("*.py")} - {to_the_compiler}:
        found |= set(re.findall(r'"((?:stablehlo|sdy|func)\.\w+)"', path.read_text()))
    texts = "".join(p.read_text() for p in (core / "_ops").rglob("*.py"))
    simple = re.findall(r'\bsimple\("(\w+)"', texts)
    return found | {f"stablehlo.{n}" for n in simple}


def test_whatever_core_writes_has_a_rule_or_is_refused_by_name():
    """A lowering that writes a new operation fails here, until the reader knows it."""
    written = names_written()
    assert len(written) > 70
    structure = {"func.func", "stablehlo.constant", "sdy.sharding", "sdy.sharding_rule"}
    assert written - RULES.keys() - REFUSED.keys() - structure == {DYNAMIC_GENERATOR}  # a call
    assert not RULES.keys() & REFUSED.keys()


# ---- by hand -------------------------------------------------------------------------------

V = ((4,), "float32")


def comparator(body, kinds=("f32",)):
    args = ", ".join(f"%{s}{i}: tensor<{k}>" for i, k in enumerate(kinds) for s in "ab")
    return f"^bb0({args}):\n{body}\nstablehlo.return %r : tensor<i1>"


def sort_of(body, dtype="f32"):
    return of_text(
        f"""func.func public @main(%x: tensor<7x{dtype}>) -> (tensor<7x{dtype}>, tensor<7xi32>) {{
          %i = stablehlo.iota dim = 0 : tensor<7xi32>
          %y:2 = "stablehlo.sort"(%x, %i) ({{
            {comparator(body, (dtype, "i32"))}
          }}) {{dimension = 0 : i64, is_stable = true}}
            : (tensor<7x{dtype}>, tensor<7xi32>) -> (tensor<7x{dtype}>, tensor<7xi32>)
          return %y#0, %y#1 : tensor<7x{dtype}>, tensor<7xi32>
        }}""",
        [((7,), "float32" if dtype == "f32" else "int32")],
        [((7,), "float32" if dtype == "f32" else "int32"), ((7,), "int32")],
    )


def compare(how, dtype, kind=""):
    comma = f", {kind}" if kind else ""
    types = f"(tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>"
    return f"stablehlo.compare {how}, %a0, %b0{comma} : {types}"


MIXED = np.array([0.5, np.nan, -0.0, 0.0, -np.inf, 0.5, 3], F32)


def test_a_sort_in_the_total_order_of_floats_upwards_and_downwards():
    at = np.array([4, 2, 3, 0, 5, 6, 1])  # -inf, -0, 0, .5, .5, 3, nan
    up = sort_of(f"%r = {compare('LT', 'f32', 'TOTALORDER')}")
    np.testing.assert_array_equal(run(up, MIXED)[1], at)
    assert "core.sort" not in operations(up.program())
    down = sort_of(f"%r = {compare('GT', 'f32', 'TOTALORDER')}")
    np.testing.assert_array_equal(run(down, MIXED)[1], [1, 6, 0, 5, 3, 2, 4])


def test_a_sort_by_any_comparator():
    """Odd numbers first, in their order: a comparator of nobody's, and stable."""
    odd = """
      %one = stablehlo.constant dense<1> : tensor<i32>
      %p = stablehlo.and %a0, %one : tensor<i32>
      %q = stablehlo.and %b0, %one : tensor<i32>
      %r = stablehlo.compare GT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
    xs = np.array([4, 7, 2, 9, 5, 8, 1], I32)
    values, places = run(sort_of(odd, "i32"), xs)
    np.testing.assert_array_equal(values, [7, 9, 5, 1, 4, 2, 8])
    np.testing.assert_array_equal(places, [1, 3, 4, 6, 0, 2, 5])


def test_a_sort_by_plain_less_is_known_again():
    less = sort_of(f"%r = {compare('LT', 'i32')}", "i32")
    assert "core.sort" in operations(less.program())
    more = sort_of(f"%r = {compare('GT', 'i32')}", "i32")
    xs = np.array([4, 7, 2, 7, 5, 8, 1], I32)
    np.testing.assert_array_equal(run(more, xs)[1], [5, 1, 3, 4, 0, 2, 6])


def test_a_reduction_by_any_function():
    """Pairs (greatest, how often it was there), which no reduction of Plait is."""
    exported = of_text(
        """func.func public @main(%x: tensor<4xf32>, %n: tensor<4xi32>)
              -> (tensor<f32>, tensor<i32>) {
          %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %y:2 = "stablehlo.reduce"(%x, %n, %low, %zero) ({
            ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
              %m = stablehlo.maximum %a, %b : tensor<f32>
              %s = stablehlo.constant dense<0> : tensor<i32>
              %p = stablehlo.compare EQ, %a, %m : (tensor<f32>, tensor<f32>) -> tensor<i1>
              %q = stablehlo.compare EQ, %b, %m : (tensor<f32>, tensor<f32>) -> tensor<i1>
              %k = stablehlo.select %p, %i, %s : tensor<i1>, tensor<i32>
              %l = stablehlo.select %q, %j, %s : tensor<i1>, tensor<i32>
              %t = stablehlo.add %k, %l : tensor<i32>
              stablehlo.return %m, %t : tensor<f32>, tensor<i32>
          }) {dimensions = array<i64: 0>}
            : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
          return %y#0, %y#1 : tensor<f32>, tensor<i32>
        }""",
        [V, ((4,), "int32")], [((), "float32"), ((), "int32")],
    )  # fmt: skip
    top, count = run(exported, np.float32([3, 5, 5, 1]), np.ones(4, I32))
    assert (top, count) == (5, 2)


@pytest.mark.parametrize("op, f", [("add", np.sum), ("maximum", np.max), ("multiply", np.prod)])
def test_windows_with_strides_padding_and_dilations(op, f):
    start = {"add": "0.0", "maximum": "0xFF800000", "multiply": "1.0"}[op]
    exported = of_text(
        f"""func.func public @main(%x: tensor<8xf32>) -> tensor<4xf32> {{
          %z = stablehlo.constant dense<{start}> : tensor<f32>
          %y = "stablehlo.reduce_window"(%x, %z) ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %s = stablehlo.{op} %a, %b : tensor<f32>
              stablehlo.return %s : tensor<f32>
          }}) {{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>,
               window_dilations = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>}}
            : (tensor<8xf32>, tensor<f32>) -> tensor<4xf32>
          return %y : tensor<4xf32>
        }}""",
        [((8,), "float32")], [((4,), "float32")],
    )  # fmt: skip
    x = np.linspace(-1, 2, 8, dtype=F32)
    fill = {"add": 0, "maximum": -np.inf, "multiply": 1}[op]
    wide = np.pad(x, (1, 2), constant_values=fill)
    want = [f(wide[i : i + 5 : 2]) for i in range(0, 7, 2)]
    np.testing.assert_allclose(run(exported, x)[0], want, rtol=1e-6)


@pytest.mark.parametrize("index, want", [(-1, 3), (0, 1), (1, 2), (2, 3), (9, 3)])
def test_a_case_that_is_out_of_range_is_the_last_one(index, want):
    branch = "%c = stablehlo.constant dense<{}.0> : tensor<f32>\nstablehlo.return %c : tensor<f32>"
    branches = ", ".join("{" + branch.format(k) + "}" for k in (1, 2, 3))
    text = """func.func public @main(%i: tensor<i32>) -> tensor<f32> {{
        %y = "stablehlo.case"(%i) ({}) : (tensor<i32>) -> tensor<f32>
        return %y : tensor<f32>
      }}"""
    exported = of_text(text.format(branches),
                       [((), "int32")], [((), "float32")])  # fmt: skip
    assert run(exported, I32(index))[0] == want


def test_a_loop_whose_turns_are_computed_is_no_scan():
    f = lambda x: lax.while_loop(lambda v: v.sum() < 9, lambda v: v * 2 + 1, x)  # noqa: E731
    exported = export(f)(X)
    assert {"core.while"} <= {*operations(exported.program())}
    x = X
    while x.sum() < 9:
        x = x * 2 + 1
    np.testing.assert_allclose(run(exported, X)[0], x, rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3])
def test_a_loop_that_counts_is_a_scan_of_rows(reverse, unroll):
    def f(x):
        step = lambda c, r: (c * 0.5 + r, c - r)  # noqa: E731
        return lax.scan(step, x[0], x, reverse=reverse, unroll=unroll)

    x = np.random.default_rng(0).normal(size=(7, 3)).astype(F32)
    for exported in (export(f)(x), export(f)(*symbolic_args_specs((x,), "b, c"))):
        carry, ys, order = x[0], np.zeros_like(x), range(7)
        for i in reversed(order) if reverse else order:
            carry, ys[i] = carry * F32(0.5) + x[i], carry - x[i]
        for got, want in zip(run(exported, x), (carry, ys), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert "core.while" not in operations(exported.program())
        scanned = [e for e in inline_calls(exported.program()).eqns if e.prim.name == "core.scan"]
        rows = [v.aval for e in scanned for v in e.inputs[e.params["consts"] + e.params["carry"] :]]
        if unroll == 1:
            assert any(a.dtype == F32 for a in rows), "what a turn reads is a row"


def test_every_turn_that_is_left_out_or_read_beside_stays_as_it_is():
    """Loops that write some rows only, twice, or out of order, are scans of whole arrays."""

    def f(x):
        body = lambda i, y: y.at[i + 1].set(x[i] + y[i])  # noqa: E731
        return lax.fori_loop(0, 3, body, x)

    want = X.copy()
    for i in range(3):
        want[i + 1] = X[i] + want[i]
    np.testing.assert_allclose(run(export(f)(X), X)[0], want, rtol=1e-6)


# ---- linear algebra by kernels -------------------------------------------------------------


def matrices(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 4))
    x = x + 1j * rng.normal(size=x.shape) if np.dtype(kind).kind == "c" else x
    return x.astype(kind)


def unnamed(exported):
    """The same module without names of operations: kernels alone are left."""
    text = re.sub(r' attributes \{plait\.operation = "(?:\\.|[^"\\])*"\}', "",
                  exported.mlir_module())  # fmt: skip
    assert "plait.operation" not in text and "custom_call" in text
    made = of_text(text, [], [])
    made.in_avals, made.out_avals, made.paths = exported.in_avals, exported.out_avals, ["x"]
    return made


FACTORISATIONS = {
    "cholesky": lambda x: pnp.linalg.cholesky(x @ pnp.conj(pnp.swapaxes(x, -1, -2))),
    "upper": lambda x: pnp.linalg.cholesky(x @ pnp.conj(pnp.swapaxes(x, -1, -2)), upper=True),
    "lu": lambda x: lax.linalg.lu(x),
    "qr": lambda x: lax.linalg.qr(x, full_matrices=False),
    "eigh": lambda x: pnp.linalg.eigvalsh(x + pnp.conj(pnp.swapaxes(x, -1, -2))),
    "svd": lambda x: pnp.linalg.svd(x, compute_uv=False),
    "svd and vectors": lambda x: (lambda u, s, v: (u * s[..., None, :]) @ v)(*pnp.linalg.svd(x)),
    "eig": lambda x: pnp.abs(pnp.linalg.eigvals(x)),
    "solve": lambda x: pnp.linalg.solve(x, x[..., :1]),
    "triangular": lambda x: lax.linalg.triangular_solve(
        x, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    ),
    "schur": lambda x: lax.linalg.schur(x),
    "hessenberg": lambda x: lax.linalg.hessenberg(x),
    "tridiagonal": lambda x: lax.linalg.tridiagonal(x + pnp.conj(pnp.swapaxes(x, -1, -2))),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize("name", FACTORISATIONS)
def test_kernels_of_libraries_are_read(name, kind):
    """As files of others have them, which name no operations."""
    x = matrices(kind)
    exported = export(lambda x: FACTORISATIONS[name](x))(x)
    want = [np.asarray(y) for y in plait.tree.leaves(exported.call(x))]
    for got, y in zip(run(unnamed(exported), x), want, strict=True):
        np.testing.assert_allclose(got, y, rtol=2e-3, atol=2e-4)


# ---- sizes, platforms, keys ----------------------------------------------------------------


@pytest.mark.feature("E05")
def test_sizes_are_known_by_name():
    f = lambda x: (pnp.concatenate([x, x[1:]]).reshape(-1), x[: x.shape[0] // 2], x.mean(0))  # noqa: E731
    exported = deserialize(export(f)(*symbolic_args_specs((X,), "b, 3")).serialize())
    program = exported.program()
    assert [repr(a) for a in program.out_avals] == ["f32[6*b - 3]", "f32[floordiv(b, 2),3]",
                                                    "f32[3]"]  # fmt: skip
    again = export(lambda x: tuple(evaluate(program, [x])))(*exported.in_avals)
    for n in (1, 2, 5):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(F32)
        for got, want in zip(again.call(x), exported.call(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sizes_that_may_be_0():
    types = plait.ShapeDtypeStruct(plait.symbolic_dims("n", Scope([], lower=0)), F32)
    exported = export(lambda x: (pnp.cumsum(x), x.sum(), x[::2]))(types)
    for n in (0, 1, 4):
        x = np.arange(n, dtype=F32)
        got = run(exported, x)
        for y, want in zip(got, (np.cumsum(x), x.sum(), x[::2]), strict=True):
            np.testing.assert_array_equal(y, want)


def test_a_program_for_one_platform_and_for_all():
    def f(x):
        return lax.platform_dependent(x, cpu=lambda v: v * 2, tpu=lambda v: v - 7)

    exported = deserialize(export(f, platforms=["tpu", "cpu"])(X).serialize())
    np.testing.assert_allclose(run(exported, X)[0], X * 2)
    here, there = exported.program("cpu"), exported.program("tpu")
    assert "core.mul" in operations(here) and "core.sub" not in operations(here)
    assert "core.sub" in operations(there) and "core.cond" not in operations(there)
    asking = exported.program()
    assert {"core.platform_index", "core.cond"} <= {*operations(asking)}
    moved = plait.jit(lambda x: evaluate(asking, [x])).lower(X, lowering_platforms=("tpu",))
    assert "subtract" in moved.as_text()
    with pytest.raises(NotExportable, match="not for 'rocm'"):
        exported.program("rocm")


def test_a_question_of_format_1_is_read():
    exported = deserialize((GOLDEN / "format1_platforms.plait").read_bytes())
    program = exported.program(lose_custom_rules=True)
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(F32)
    again = export(lambda x: tuple(evaluate(program, [x])), platforms=["cpu", "tpu"])
    got = again(*exported.in_avals).call(x)
    for y, want in zip(got, (x * x, (x * x).sum(0), np.sin(x)), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["static", "symbolic"])
def test_files_of_earlier_releases_are_read(name):
    """They name no operation, and do not say whether there are rules."""
    exported = deserialize((GOLDEN / f"format1_{name}.plait").read_bytes())
    assert exported.custom_rules is None
    with pytest.raises(NotReadable, match="nothing is said") as e:
        exported.program()
    assert "lose_custom_rules=True" in e.value.fix
    assert exported.program(lose_custom_rules=True).eqns


@pytest.mark.parametrize("name", ["tree", "linalg", "sizes"])
def test_files_of_jax_are_read(name):
    exported = import_jax((GOLDEN / f"jax_{name}.bin").read_bytes())
    assert exported.custom_rules is None
    allowed = import_jax((GOLDEN / f"jax_{name}.bin").read_bytes(), lose_custom_rules=True)
    rng = np.random.default_rng(0)
    sizes = {"b": 2, "c": 3}
    shapes = [[d if isinstance(d, int) else d.substitute(sizes) for d in a.shape]
              for a in allowed.in_avals]  # fmt: skip
    xs = [
        plait.random.key(7) if isinstance(a.dtype, Opaque) else rng.normal(size=s).astype(a.dtype)
        for s, a in zip(shapes, allowed.in_avals)
    ]
    want = plait.tree.leaves(exported.call(*exported.in_tree.unflatten(xs)[0],
                                           **exported.in_tree.unflatten(xs)[1]))  # fmt: skip
    for got, y in zip(run(allowed, *xs), want, strict=True):
        y = np.asarray(y)
        kind = np.complex128 if y.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(kind), y.astype(kind), rtol=1e-4, atol=1e-5)


def test_keys_are_taken_and_returned():
    key = plait.random.key(3)
    drawing = lambda k: (plait.random.split(k)[0], plait.random.uniform(k, (3,)))  # noqa: E731
    exported = deserialize(export(drawing)(key).serialize())
    program = exported.program()
    assert "key" in repr(program.in_avals[0]) and "key" in repr(program.out_avals[0])
    split, drawn = plait.jit(lambda k: evaluate(program, [k]))(key)
    np.testing.assert_array_equal(drawn, plait.random.uniform(key, (3,)))
    want = plait.random.key_data(plait.random.split(key)[0])
    np.testing.assert_array_equal(plait.random.key_data(split), want)


def test_constants_of_every_dtype_are_the_same_bits():
    values = [
        np.array([np.nan, -0.0, np.inf, 1e-40], F32), np.array([2**63, 1], np.uint64),
        np.array([1 + 2j, complex(np.nan, -0.0)], np.complex64), np.array([True, False]),
        pnp.array([1.5, -0.0, float("nan")], "bfloat16"), pnp.array([-8, 7], "int4"),
        pnp.array([1.5, 448.0], "float8_e4m3fn"), np.array([1e300], np.float64),
        np.arange(1000, dtype=np.int16), np.full((3, 2), 7, np.uint8), np.complex128(3 - 1j),
        np.random.default_rng(0).normal(size=200).astype(np.complex64),
        np.random.default_rng(0).normal(size=200).astype("float16"),
        pnp.array(np.random.default_rng(0).normal(size=200), "bfloat16"),
    ]  # fmt: skip
    exported = export(lambda x: (x, *values))(F32(0))
    got = run(exported, F32(0))[1:]
    for y, v in zip(got, values, strict=True):
        v = np.asarray(v)
        assert y.dtype == v.dtype and y.tobytes() == np.broadcast_to(v, y.shape).tobytes()


# ---- what is refused -----------------------------------------------------------------------


def of_one(op, kind="tensor<4xf32>"):
    return of_text(
        f"func.func public @main(%x: {kind}) -> {kind} {{\n%y = {op}\nreturn %y : {kind}\n}}",
        [V], [V],
    )  # fmt: skip


def test_an_operation_that_is_refused_is_named():
    exported = of_text(
        """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %s = stablehlo.constant dense<4> : tensor<1xi64>
          %y = stablehlo.rng %a, %b, %s, distribution = UNIFORM
            : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
          return %y : tensor<4xf32>
        }""".replace("%a, %b", "%z, %o").replace(
            "%s =", "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%o = stablehlo.constant dense<1.0> : tensor<f32>\n%s =", 1,
        ),
        [V], [V],
    )  # fmt: skip
    with pytest.raises(NotReadable, match="stablehlo.rng cannot be read back: it draws") as e:
        exported.program()
    assert "call the artifact as it is" in e.value.fix and "test_reader.py" in str(e.value)


def test_an_operation_that_is_unknown_is_named():
    with pytest.raises(NotReadable, match="stablehlo.map is an operation that this reader") as e:
        of_text(
            """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
              %y = "stablehlo.map"(%x) ({
                ^bb0(%a: tensor<f32>):
                  stablehlo.return %a : tensor<f32>
              }) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
              return %y : tensor<4xf32>
            }""",
            [V], [V],
        ).program()  # fmt: skip
    assert "--upgrade plait-export" in e.value.fix


@pytest.mark.parametrize(
    "text, said",
    [
        ("core.sin", "says nothing here"),
        ("f(%0: f32[4]) { return %0 }", "says nothing here"),
        ("f(%0: f32[4]) { %1: f32[4] = core.nobody(%0) return %1 }", "says nothing here"),
        ("f(%0: f32[3]) { %1: f32[3] = core.cumsum(%0; axis=0, reverse=false) return %1 }", None),
        ("f(%0: f32[3,2]) { %1: f32[2] = core.reduce_sum(%0; axes=(0,)) return %1 }",
         "is said to return float32"),
        ("f(%0: f32[4]) { %1: i32[4] = core.convert(%0; dtype=i32, weak=false) return %1 }",
         "is said to return float32"),
        ("f(%0: f32[4], %1: f32[4]) { %2: f32[4] = core.add(%0, %1) return %2 }", "no place"),
    ],
)  # fmt: skip
def test_a_name_that_lies_is_refused(text, said):
    """The text is only a name: types are those of the module."""
    exported = claiming(text)
    if said is None:
        assert run(exported, np.ones(4, F32))[0].tolist() == [1, 2, 3, 4]
        return
    with pytest.raises(NotReadable, match=said):
        exported.program()


def test_a_name_may_not_call_a_foreign_function():
    foreign = (
        "f(%0: f32[4]) { %1: f32[4] = core.foreign(%0; target='evil', outs=(f32[4],), config='', "
        "acts=false, vmap_method=none, in_layouts=((0,),), out_layouts=((0,),), aliases=()) "
        "return %1 }"
    )
    with pytest.raises(NotReadable, match="no place in an artifact|says nothing here"):
        claiming(foreign).program()


def test_functions_that_call_each_other_often_are_read_once():
    """A module of 40 lines that would be 2**40 operations written out."""
    ways = "\n".join(
        f"""func.func private @f{i}(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %a = call @f{i + 1}(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %b = call @f{i + 1}(%a) : (tensor<4xf32>) -> tensor<4xf32>
          return %b : tensor<4xf32>
        }}"""
        for i in range(40)
    )
    exported = of_text(
        ways + """
        func.func private @f40(%x: tensor<4xf32>) -> tensor<4xf32> {
          return %x : tensor<4xf32>
        }
        func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = call @f0(%x) : (tensor<4xf32>) -> tensor<4xf32>
          return %y : tensor<4xf32>
        }""",
        [V], [V],
    )  # fmt: skip
    reading = Reading("f", exported.mlir_module_serialized, ("cpu",), False)
    program = reading.program(exported.in_avals, exported.out_avals)
    assert len(program.eqns) <= 1


def test_what_is_specialised_says_which_names_it_has_lost():
    exported = export(lambda x: pnp.sort(lax.erf(x), 0))(*symbolic_args_specs((X,), "b, 3"))
    small = deserialize(exported.specialize({"b": 4}).serialize())
    assert exported.custom_rules == () and small.custom_rules == ("core.erf", "core.sort")
    with pytest.raises(NotReadable, match="does not hold core.erf, core.sort"):
        small.program()
    assert small.program(lose_custom_rules=True).eqns


def test_the_same_function_is_the_same_bytes():
    f = lambda x: pnp.sort(lax.erf(x), 0)  # noqa: E731
    assert export(f)(X).serialize() == export(f)(X).serialize()
