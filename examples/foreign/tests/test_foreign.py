"""The recurrence in C++ against a loop, under every transformation."""

import shutil
import subprocess
import sys

import numpy as np
import plait_foreign
import pytest
from plait_foreign import recur

import plait
from plait import lax

HAS_COMPILER = shutil.which("c++") is not None
pytestmark = pytest.mark.skipif(not HAS_COMPILER, reason="there is no C++ compiler here")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 5)).astype(np.float32)
D = RNG.uniform(0.2, 0.9, (8, 5)).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    """Compiled once."""
    plait_foreign.load(plait_foreign.build(tmp_path_factory.mktemp("foreign")))


def loop(x, decay, reverse=False):
    """The recurrence in Python."""
    y, last = np.zeros_like(x), np.zeros(x.shape[:-1], x.dtype)
    steps = range(x.shape[-1])
    for i in reversed(steps) if reverse else steps:
        last = decay[..., i] * last + x[..., i]
        y[..., i] = last
    return y


def slopes(f, *xs):
    """The gradient of a function of numpy arrays, by central differences in double precision."""
    out = []
    for k, x in enumerate(xs):
        found = np.zeros_like(x, np.float64)
        for at in np.ndindex(x.shape):
            h = np.zeros(x.shape)
            h[at] = 1e-5
            wide = [np.float64(v) for v in xs]
            ends = [f(*wide[:k], wide[k] + s * h, *wide[k + 1 :]) for s in (1, -1)]
            found[at] = (ends[0] - ends[1]) / 2e-5
        out.append(found)
    return out


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-4, atol=2e-5)


def test_against_everything_that_is_said_of_it():
    samples = [(X[:2], D[:2]), (X[0], D[0])]
    params = [{"reverse": False}, {"reverse": True}]
    report = plait.testing.conformance(recur, samples, loop, params, at_least=60)
    laws = {"law jvp", "law transpose", "law batching", "law jet", "law laplacian"}
    assert {"value", "jit", "text", "symbolic", *laws} <= report.checks.keys()


def turned(x, d):
    turn = lambda s: (s[0] + 1, recur(s[1], d))
    return lax.while_loop(lambda s: s[0] < 2, turn, (0, x))[1]


PROGRAMS = {  # name: (a function of x and decay, the same by loops)
    "eager": (recur, loop),
    "double": (lambda x, d: recur(x.astype(np.float64), d.astype(np.float64)), loop),
    "scan": (
        lambda x, d: lax.scan(lambda c, _: (recur(c, d), None), x, None, length=2)[0],
        lambda x, d: loop(loop(x, d), d),
    ),
    "while": (lambda x, d: turned(x, d), lambda x, d: loop(loop(x, d), d)),
    "cond": (
        lambda x, d: lax.cond(x[0, 0] > 99, lambda: x, lambda: recur(x, d, reverse=True)),
        lambda x, d: loop(x, d, True),
    ),
    "vmap": (plait.vmap(recur), loop),
    "empty": (lambda x, d: recur(x[:0], d[:0]), lambda x, d: x[:0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_in_programs(name, compiled):
    f, reference = PROGRAMS[name]
    close((plait.jit(f) if compiled else f)(X, D), reference(X, D))


def test_mapped_along_another_axis():
    cube = RNG.standard_normal((8, 3, 5)).astype(np.float32)
    got = plait.vmap(recur, in_axes=(1, None), out_axes=1)(cube, D)
    close(got, np.stack([loop(cube[:, i], D) for i in range(3)], 1))


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(reverse):
    f = lambda x, d: (recur(x, d, reverse=reverse) ** 2).sum()
    want = slopes(lambda x, d: (loop(x, d, reverse) ** 2).sum(), X[:2], D[:2])
    kept = plait.checkpoint(f)
    many = lambda x, d: plait.vmap(f)(x, d).sum()
    for g in (f, plait.jit(f), kept, many):
        for got, w in zip(plait.grad(g, argnums=(0, 1))(X[:2], D[:2]), want, strict=True):
            close(got, w)


def test_second_derivatives():
    f = lambda x: (recur(x, D[0]) ** 2).sum()
    jacobian = np.stack([loop(row, D[0]) for row in np.eye(5, dtype=np.float32)], 1)
    close(plait.hessian(f)(X[0]), 2 * jacobian.T @ jacobian)


def test_on_eight_devices(rows):
    mesh, cut = rows
    run = plait.shard_map(recur, mesh=mesh, in_specs=(cut, cut), out_specs=cut)
    close(run(X, D), loop(X, D))
    want = slopes(lambda x: loop(x, np.float64(D)).sum(), X)[0]
    close(plait.grad(lambda x: run(x, D).sum())(X), want)


def test_exported(told):
    f = plait.jit(recur)
    told(lambda: plait.export.export(f)(X, D), "plait_foreign_recur_float32", "custom_calls=")
    calls = {"custom_calls": ["plait_foreign_recur_float32"]}
    file = plait.export.export(f, **calls)(X, D).serialize()
    close(plait.export.deserialize(file, **calls).call(X, D), loop(X, D))


def test_plugins_are_imported_when_they_are_used():
    program = (
        "import sys, plait, plait_foreign, numpy\n"
        "from plait_foreign import recur\n"
        "print(plait.make_program(recur)(numpy.ones(3, 'f'), numpy.ones(3, 'f')))\n"
        "seen = lambda: [m for m in ('plait_autodiff', 'plait_batching') if m in sys.modules]\n"
        "print(seen())\n"
        "plait.make_program(plait.vmap(recur))(*[numpy.ones((2, 3), 'f')] * 2)\n"
        "print(seen())"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    assert "foreign.recur" in told
    assert told.splitlines()[-2:] == ["[]", "['plait_batching']"]


def test_wrong_input(told, tmp_path, monkeypatch):
    told(lambda: recur(X, D[0]), "one shape", "f32[8,5] and f32[5]")
    told(lambda: recur(X.astype(np.int32), D.astype(np.int32)), "float dtype", "i32[8,5]")
    told(lambda: recur(1.0, 2.0), "f32[]")
    told(lambda: plait_foreign.build(tmp_path, "no-such-compiler"), "no-such-compiler", "CXX")
    monkeypatch.setattr(plait_foreign, "_loaded", [])
    told(lambda: recur(X[:3], D[:3]), "not loaded", "plait_foreign.load")
