"""Reductions, running sums, contractions, convolutions and sorts staged once, for all sizes.

Invariant: each function is staged on symbolic sizes, its module refined at several actual ones,
and the results compared with the same function staged on those sizes.
"""

import ml_dtypes
import numpy as np
import pytest

import plait
from plait._base import jaxlib_api
from plait._core.array import asarray, wrap
from plait._core.buffers import client, device_list, devices, handler
from plait._core.staging import staged
from plait._ops.argreduction import argmax, argmin
from plait._ops.contraction import matmul, tensordot, vdot
from plait._ops.conversion import bitcast
from plait._ops.convolution import conv, conv_transpose
from plait._ops.cumulative import cumlogsumexp, cummax, cumprod, cumsum, linear_recurrence
from plait._ops.elementwise import add
from plait._ops.reduction import all_, any_, max_, mean, min_, prod, sum_
from plait._ops.sorting import argsort, sort, sort_together, top_k
from plait._types.avals import Aval, aval_for
from plait._types.dims import symbolic_dims
from plait._xla import mlir
from plait._xla.executables import executable
from plait._xla.lower import Emitter, Unit
from plait_numpy.ext.linalg import (
    cholesky_,
    det_,
    general,
    identity,
    lu_,
    pivots_to_permutation,
    qr_,
    svd_,
    times,
    transposed,
)

b, c = symbolic_dims("b, c")


def at_sizes(program, xs, sizes):
    """Results of a program of symbolic types on actual arrays."""
    keys = [x.aval for x in xs]
    outs = [
        Aval([d if d.__class__ is int else d.substitute(sizes) for d in o.shape], o.dtype)
        for o in program.out_avals
    ]
    with jaxlib_api.lock:
        unit = Unit(("cpu",))
        kinds = [mlir.type_of(a) for a in keys], [mlir.type_of(a) for a in program.out_avals]
        block, _ = mlir.function(unit.module, "main", *kinds, public=True)
        e = Emitter(unit, mlir.insertion_point(block), {}, {}, {}, {}, mlir.bindings().unknown)
        e.dims = {n: e.constant(v, aval_for((), "int32")) for n, v in sizes.items()}
        args = [e.op("stablehlo.convert", [x], a)
                for x, a in zip(block.arguments, program.in_avals)]  # fmt: skip
        results = e.program(program, args)
        e.create("func.return", [], results, None, None, 0, e.where, e.ip)
        code = jaxlib_api.refine_shapes(mlir.bytecode(unit.module))
    options = jaxlib_api.compile_options([devices()[0].id], False)
    run = jaxlib_api.load(client(), code, device_list(None), options).execute_sharded
    bufs = run([x.buffer() for x in xs]).consume_with_handlers([handler(o) for o in outs])
    return [np.asarray(wrap(buf, o)) for buf, o in zip(bufs, outs)]


def at_actual(f, xs):
    program = staged(f, [x.aval for x in xs])
    run, handlers, keys = executable(program)
    bufs = run([x.buffer() for x in xs]).consume_with_handlers(handlers)
    return [np.asarray(wrap(buf, k)) for buf, k in zip(bufs, keys)]


F32, F64 = np.float32, np.float64


def factors(x):
    """Of positive definite matrices made of `x`."""
    s = add.bind(times(x, transposed(x)), identity(times(x, transposed(x)).aval))
    lu, pivots = lu_.bind(s)
    return [
        cholesky_.bind(s), *svd_.bind(s, full_matrices=True, compute_uv=True), lu,
        pivots_to_permutation.bind(pivots, size=s.aval.shape[-1]), general(s, s), det_.bind(s),
        *qr_.bind(s, full_matrices=False, pivoting=True),
    ]  # fmt: skip


CASES = {
    "sums": (lambda x: [sum_(x, 0), sum_(x), prod(x, 1), mean(x), mean(x, 0)], [(b, 3)], F64),
    "narrow sums": (lambda x: [sum_(x, 0), mean(x)], [(b, 3)], ml_dtypes.bfloat16),
    "extremes": (lambda x: [max_(x, 0), min_(x), any_(x, 1), all_(x)], [(b, 3)], F32),
    "places": (lambda x: [argmax(x, 0), argmin(x, 1), argmax(x)], [(b, 3)], F32),
    "keepdims": (lambda x: [sum_(x, 0, keepdims=True), argmax(x, 1, keepdims=True)],
                 [(b, 3)], F32),
    "two sizes": (lambda x: [sum_(x, 1), mean(x, 0)], [(b, c + 1)], F32),
    "running": (lambda x: [cumsum(x, 0), cumprod(x, 1), cumsum(x)], [(b, 3)], F64),
    "running back": (lambda x: [cumsum(x, 0, reverse=True), cummax(x, 1, True)], [(b, 3)], F32),
    "running narrow": (lambda x: [cumsum(x, 0)], [(b, 3)], ml_dtypes.bfloat16),
    "running logs": (lambda x: [cumlogsumexp(x, 0)], [(b, 2)], F32),
    "recurrence": (lambda a, u: [linear_recurrence(a, u)], [(b, 2), (b, 2)], F32),
    "matmul": (lambda x, y: [x @ y, y.T @ y], [(b, 3), (3, 4)], F64),
    "stacks": (lambda x, y: [matmul(x, y)], [(b, 1, 2, 3), (c, 3, 4)], F64),
    "contracted size": (lambda x, y: [matmul(x, y), vdot(x, x), tensordot(x, y, 1)],
                        [(3, b), (b, 2)], F64),
    "conv": (lambda x, y: [conv(x, y, (2,), "VALID")], [(b, 2, 7), (3, 2, 3)], F64),
    "conv over a size": (
        lambda x, y: [conv(x, y, (s,), word) for s in (1, 2) for word in ("SAME", "VALID")],
        [(2, 2, b), (3, 2, 2)], F64),
    "conv transpose": (lambda x, y: [conv_transpose(x, y, (2,), "SAME")],
                       [(b, 5, 2), (3, 2, 4)], F64),
    "sort": (lambda x: [sort(x, 0), sort(x), argsort(x, 0), argsort(x, 1)], [(b, 3)], F32),
    "wide sort": (lambda x: [argsort(x, 0), sort(x, 0, descending=True)], [(b, 3)], F64),
    "several keys": (lambda x, y: sort_together([x, y], 0, 2), [(b, 3), (b, 3)], F32),
    "top_k": (lambda x: top_k(x, 2), [(b, 3)], F32),
    "bitcast": (lambda x: [bitcast(x, np.int8), bitcast(x, np.int32), bitcast(x, np.uint16)],
                [(b, 3)], F32),
    "factors": (factors, [(b, c, c)], F64),
    "factors of known size": (factors, [(b, 3, 3)], F64),
    "bitcast to wider": (lambda x: [bitcast(x, np.uint64), bitcast(x, F64)], [(b, 2)], F32),
}  # fmt: skip


EXACT = {"factors", "factors of known size"}
"""Cases with elements that are nothing but rounding, of which each tier has its own."""


def judged(case):
    return pytest.param(case, marks=[pytest.mark.full_tier] * (case in EXACT))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", [judged(case) for case in CASES])
def test_once_for_all_sizes(case):
    f, shapes, dtype = CASES[case]
    program = staged(f, [aval_for(s, dtype) for s in shapes])
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (5, 3)):
        sizes = {"b": n, "c": m}
        shaped = [[d if d.__class__ is int else d.substitute(sizes) for d in s] for s in shapes]
        xs = [asarray(rng.normal(size=s).astype(dtype)) for s in shaped]
        used = {v for s in shapes for d in s if d.__class__ is not int for v in d.variables}
        got = at_sizes(program, xs, {k: v for k, v in sizes.items() if k in used})
        for g, want in zip(got, at_actual(f, xs), strict=True):
            assert g.shape == want.shape and g.dtype == want.dtype
            np.testing.assert_allclose(
                g.astype(F64), want.astype(F64), rtol=1e-5 if dtype != F64 else 1e-12
            )


@pytest.mark.parametrize("f", [
    lambda m, n: n * 1.5, lambda m, n: 1.5 * n, lambda m, n: n + 0.5, lambda m, n: 0.5 - n,
    lambda m, n: n / 2, lambda m, n: 2 / n, lambda m, n: n / (n + 1), lambda m, n: n // 2.0,
    lambda m, n: 7.5 % n, lambda m, n: n % 2.5, lambda m, n: (n * n - 1) * -1.5,
    lambda m, n: n**0.5, lambda m, n: n * np.float32(2.5), lambda m, n: np.float32(2.5) * n,
    lambda m, n: n * np.float32([1, 2.5]), lambda m, n: np.float32([1, 2.5]) - n,
    lambda m, n: n // m.asarray(np.int32(2)), lambda m, n: n // np.asarray(np.int32(2)),
    lambda m, n: m.float32(n), lambda m, n: m.float16(n) / 2, lambda m, n: m.int8(n) + 1,
    lambda m, n: m.sqrt(m.float32(n * 2)),
], ids=lambda f: None)  # fmt: skip
def test_a_size_with_numbers_that_are_no_sizes(f):
    from_numpy = type("m", (), {"float32": np.float32, "float16": np.float16, "int8": np.int8,
                                "asarray": np.asarray, "sqrt": np.sqrt})  # fmt: skip
    symbolic = plait.make_program(lambda x: f(plait.numpy, x.shape[0]))(
        plait.ShapeDtypeStruct((b,), F32)
    )
    known = plait.make_program(lambda x: f(plait.numpy, x.shape[0]))(
        plait.ShapeDtypeStruct((3,), F32)
    )
    assert symbolic.out_avals[0].dtype == known.out_avals[0].dtype
    for n in (1, 2, 5):
        (got,) = at_sizes(symbolic, [asarray(np.zeros(n, F32))], {"b": n})
        np.testing.assert_allclose(got, f(from_numpy, n), rtol=2e-3)
