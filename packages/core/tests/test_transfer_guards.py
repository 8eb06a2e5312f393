"""Guards of transfers: what is implicit is refused or logged, what is explicit passes.

Invariant: each kind of transfer is made by what users write, and its line is this file's.
"""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import PlaitError, TransferError

HOST = np.float32([1, 2, 3])
IMPLICIT_IN = {
    "argument": lambda f, x: f(HOST),
    "large argument": lambda f, x: f(np.ones(5000, np.float32)),
    "operand": lambda f, x: x + HOST,
    "asarray": lambda f, x: pnp.asarray(HOST),
    "list": lambda f, x: pnp.array([1.0, 2.0]),
    "dlpack": lambda f, x: pnp.from_dlpack(HOST),
    "scan": lambda f, x: plait.lax.scan(lambda c, v: (c + v, None), 0.0, HOST),
}
IMPLICIT_OUT = {
    "asarray": lambda f, x: np.asarray(x),
    "float": lambda f, x: float(x[0]),
    "if": lambda f, x: 1 if f(x).sum() > 0 else 0,
    "item": lambda f, x: x[0].item(),
    "tolist": lambda f, x: x.tolist(),
    "print": lambda f, x: repr(x),
}
NO_TRANSFER = {
    "arrays": lambda f, x: f(x) + x,
    "numbers": lambda f, x: f(2.0) + x * 3,
    "made on the device": lambda f, x: pnp.arange(4) + pnp.zeros(4),
    "computed from numbers": lambda f, x: (
        pnp.arange(4.0),
        pnp.arange(1, 9, 3),
        pnp.linspace(0, 1, 4),
        pnp.eye(3),
        pnp.tri(3),
        pnp.geomspace(1, 8, 4),
        pnp.logspace(0, 1, 4),
        pnp.fft.fftfreq(5),
        pnp.fft.rfftfreq(5),
        pnp.hanning(4),
        pnp.triu_indices(3),
        pnp.identity(2),
    ),
    "constant of a program": lambda f, x: plait.jit(lambda v: v * HOST + 7)(x),
    "branch on a shape": lambda f, x: x.shape[0] > 2,
}


@pytest.fixture
def made():
    """A jitted function that was called with an array and with one of numpy, and an array."""
    f, x = plait.jit(lambda v: v * 2), pnp.ones(3)
    for v in (HOST, HOST, x, x, 2.0, np.ones(5000, np.float32)):
        f(v)
    return f, x


WAYS = {
    "host_to_device": (
        IMPLICIT_IN,
        IMPLICIT_OUT,
        "from the host to a device",
        "plait.device_put(x)",
    ),
    "device_to_host": (
        IMPLICIT_OUT,
        IMPLICIT_IN,
        "would be read on the host",
        "plait.device_get(x)",
    ),
}
"""Transfers of one way, those of the other, and the words and the remedy of a refusal."""


@pytest.mark.parametrize("way, name", [(w, n) for w, row in WAYS.items() for n in row[0]])
def test_implicit_transfers(made, way, name):
    implicit, others, words, remedy = WAYS[way]
    with getattr(plait, f"transfer_guard_{way}")("disallow"):
        with pytest.raises(TransferError, match=words) as e:
            implicit[name](*made)
        assert f"at {__file__}:" in str(e.value) and remedy in str(e.value)
        for allowed in (NO_TRANSFER | others).values():
            allowed(*made)
    implicit[name](*made)


def test_an_array_that_was_read_is_refused_like_others():
    x = pnp.ones(3)
    for _ in range(2):
        np.asarray(x)
    with plait.transfer_guard("disallow"), pytest.raises(TransferError, match="read on the host"):
        np.asarray(x)
    np.testing.assert_array_equal(np.asarray(x), np.ones(3))


def test_device_get_is_explicit(made):
    f, x = made
    with plait.transfer_guard("disallow"):
        np.testing.assert_array_equal(plait.device_get({"y": f(x)})["y"], [2, 2, 2])
    with plait.transfer_guard("disallow_explicit"), pytest.raises(TransferError):
        plait.device_get(x)


def test_refused_calls_leave_fast_paths_intact(made):
    """Guards inside of guards; after the last one the same calls pass, and are not traced again."""
    f, _ = made
    with plait.events.counting() as n:
        for level in ("disallow", "allow", "disallow"):
            with plait.transfer_guard("disallow"):
                with plait.transfer_guard(level):
                    if level == "allow":
                        f(HOST)
                    else:
                        pytest.raises(TransferError, f, HOST)
                pytest.raises(TransferError, f, HOST)
            np.testing.assert_array_equal(np.asarray(f(HOST)), 2 * HOST)
    assert n["trace"] == n["compile"] == 0


def test_each_transfer_is_logged(made, caplog):
    f, x = made
    with caplog.at_level(logging.WARNING, "plait"), plait.transfer_guard("log"):
        for _ in range(3):
            caplog.clear()
            f(HOST)
            lines = {r.getMessage().partition("\n")[0] for r in caplog.records}
            assert lines == {"f32[3] is copied from the host to a device"}
        caplog.clear()
        float(x[0])
        plait.device_get(x)
        (line,) = [r.getMessage() for r in caplog.records]
        assert "f32[] is read on the host" in line and f"at {__file__}:" in line
    caplog.clear()
    with plait.transfer_guard("log_explicit"):
        plait.device_get(x)
    assert len(caplog.records) == 1


def test_words_that_are_not_levels():
    with pytest.raises(PlaitError, match="disallow_explicit"):
        plait.transfer_guard("forbid").__enter__()


def test_the_environment_sets_a_guard():
    code = "import numpy, plait, plait.numpy as pnp\npnp.asarray(numpy.ones(2))"
    env = {**os.environ, "PLAIT_TRANSFER_GUARD_HOST_TO_DEVICE": "disallow"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert ran.returncode and "TransferError" in ran.stderr
