"""Units through the recurrence: the rule is found by entry points, and by nothing else."""

import shutil
import subprocess
import sys

import numpy as np
import plait_foreign
import pytest
from plait_foreign import recur
from plait_units import ONE, Quantity, metre, second, with_units

import plait
from plait import lax

HAS_COMPILER = shutil.which("c++") is not None
pytestmark = pytest.mark.skipif(not HAS_COMPILER, reason="there is no C++ compiler here")

X = np.float32([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
D = np.full((2, 3), 0.5, np.float32)
Y = np.float32([[1.0, 2.5, 4.25], [0.0, 1.0, 0.5]])  # by hand


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    """Compiled once."""
    plait_foreign.load(plait_foreign.build(tmp_path_factory.mktemp("foreign")))


PROGRAMS = {  # name: (a function of x and decay, its values, their unit for metres)
    "eager": (recur, Y, metre),
    "jit": (plait.jit(recur), Y, metre),
    "vmap": (plait.vmap(recur), Y, metre),
    "square": (lambda x, d: recur(x, d) ** 2, Y**2, metre**2),
    "grad": (
        plait.grad(lambda x, d: recur(x, d).sum()), [[1.75, 1.5, 1.0]] * 2, None,
    ),
    "grad of squares": (
        plait.grad(lambda x, d: (recur(x, d) ** 2).sum()),
        [[2 * (1 + 0.5 * (2.5 + 0.5 * 4.25)), 2 * (2.5 + 0.5 * 4.25), 8.5], [1.25, 2.5, 1.0]],
        metre,
    ),
    "grad by decay": (
        plait.grad(lambda x, d: recur(x, d).sum(), argnums=1),
        [[0.0, 1.5, 2.5], [0.0, 0.0, 1.0]],
        metre,
    ),
    "scan": (lambda x, d: lax.scan(lambda c, r: (c, recur(r, d[0])), 0, x)[1], Y, metre),
    "cond": (lambda x, d: lax.cond(d[0, 0] > 0, lambda: recur(x, d), lambda: x * 2), Y, metre),
    "while": (
        lambda x, d: lax.while_loop(lambda s: s[0] < 1, lambda s: (1, recur(s[1], d)), (0, x))[1],
        Y,
        metre,
    ),
    "checkpoint": (plait.checkpoint(recur), Y, metre),
    "ratio": (lambda x, d: recur(x / x[0, 0], d), Y, ONE),
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_units_go_through(name, compiled):
    f, want, unit = PROGRAMS[name]
    run = with_units(f)
    got = (plait.jit(run) if compiled else run)(Quantity(X, metre), D)
    value, found = (got.value, got.unit) if isinstance(got, Quantity) else (got, None)
    np.testing.assert_allclose(value, want, rtol=1e-5)
    assert found == unit


def test_from_outside(rows):
    run = with_units(recur)
    np.testing.assert_allclose(plait.vmap(run)(Quantity(X, metre), D).value, Y)
    mesh, cut = rows
    cuts = plait.shard_map(run, mesh=mesh, in_specs=(cut, cut), out_specs=cut)
    got = cuts(Quantity(np.tile(X, (4, 1)), metre), np.tile(D, (4, 1)))
    np.testing.assert_allclose(got.value, np.tile(Y, (4, 1)))
    assert got.unit == metre


def test_what_does_not_fit(told):
    told(lambda: with_units(recur)(Quantity(X, metre), Quantity(D, second)), "decay", "in s")


def test_it_is_found_by_its_entry_point():
    """Nobody imports it, and where it is not admitted there is no rule."""
    program = (
        "import sys, plait, numpy, plait_foreign, plait_units as u\n"
        "f = plait.make_program(lambda x: u.with_units(plait_foreign.recur)(u.Quantity(x, u.metre),"
        " numpy.ones(3, 'f')).value)\n"
        "assert 'plait_bridge' not in sys.modules\n"
        "try: print(f(numpy.ones(3, 'f')), 'plait_bridge' in sys.modules)\n"
        "except plait.errors.MissingRule as e: print(e)"
    )

    def run(plugins):
        command = [sys.executable, "-W", "error", "-c", program]
        environment = {"PLAIT_PLUGINS": plugins, "PLAIT_CACHE_DIR": "", "PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "foreign.recur" in run("all") and run("all").endswith("True\n")
    assert "no 'units' rule for primitive 'foreign.recur'" in run("units,foreign")
