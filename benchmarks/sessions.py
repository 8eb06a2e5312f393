"""Whole sessions of users: what a process costs from its start to its end, with its peak memory.

    python benchmarks/sessions.py LIBRARY NAME

prints the CPU seconds and the peak of resident memory, in megabytes, of this process.  A first
start finds an empty folder of compiled programs, a second one what the first has left there.

Invariant: a session is a program that a user would write, on names that both libraries have.
"""

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Program = Callable[[Any], None]


def notebook(lib: Any) -> None:
    """Thirty small functions, each compiled and called, as the cells of a notebook do."""
    n, x = lib.np, lib.np.linspace(0.1, 1.0, 24).reshape(4, 6)
    ones = [n.sin, n.exp, n.log, n.tanh, n.sqrt, n.abs, n.arctan, n.sort, n.square, n.cos]
    for i, f in enumerate(ones):
        lib.jit(lambda x, f=f, i=i: f(x) * (i + 1.0) + x)(x)
        lib.jit(lambda x, f=f: (f(x) - n.mean(x, axis=0)).sum(axis=1))(x)
        lib.jit(lib.grad(lambda x, f=f: n.sum(f(x) @ x.T)))(x)


def analysis(lib: Any) -> None:
    """Statistics of a table, and a fit by Newton's method, with nothing compiled by hand."""
    n, rng = lib.np, np.random.default_rng(0)
    table = n.asarray(rng.normal(size=(200, 5)).astype(np.float32))
    target = n.asarray((rng.uniform(size=200) > 0.5).astype(np.float32))
    scaled = (table - table.mean(0)) / table.std(0)
    n.corrcoef(scaled.T), n.median(table, axis=0), n.quantile(table, 0.9, axis=0)  # noqa: B018

    def loss(w: Any) -> Any:
        z = scaled @ w
        return n.mean(n.logaddexp(0.0, z) - target * z) + 0.01 * n.sum(w**2)

    w = n.zeros(5)
    for _ in range(5):
        w = w - n.linalg.solve(lib.jacfwd(lib.grad(loss))(w), lib.grad(loss)(w))
    np.asarray(w)


def ode_fit(lib: Any) -> None:
    """Parameters of an oscillator by gradients through a scan of Runge-Kutta steps."""
    n = lib.np

    def rhs(p: Any, y: Any) -> Any:
        return n.stack([y[1], -p[0] * y[0] - p[1] * y[1]])

    def path(p: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            k1 = rhs(p, y)
            k2 = rhs(p, y + 0.05 * k1)
            k3 = rhs(p, y + 0.05 * k2)
            k4 = rhs(p, y + 0.1 * k3)
            y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return y, y

        return lib.lax.scan(step, n.array([1.0, 0.0]), None, length=60)[1]

    seen = lib.jit(path)(n.array([2.0, 0.3]))
    descend = lib.jit(lib.value_and_grad(lambda p: n.mean((path(p) - seen) ** 2)))
    p = n.array([1.0, 0.1])
    for _ in range(50):
        _, g = descend(p)
        p = p - 0.3 * g
    np.asarray(p)


def training(lib: Any) -> None:
    """A classifier of four layers, with momentum: the first script of a user."""
    workloads = importlib.import_module("workloads")
    loss, params, x, y = workloads.mlp(lib, (32, 64, 64, 64, 10), 64)

    @lib.jit
    def step(params: Any, momentum: Any) -> Any:
        value, g = lib.value_and_grad(loss)(params, x, y)
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g, momentum, g)
        return lib.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum, value

    momentum = lib.tree.map(lib.np.zeros_like, params)
    for _ in range(100):
        params, momentum, value = step(params, momentum)
    float(value)


def transformer(lib: Any) -> None:
    """Five steps of a transformer of twelve layers."""
    workloads = importlib.import_module("workloads")
    _, step, (params, momentum, tokens, targets) = workloads.transformer(lib)
    step = lib.jit(step)
    for _ in range(5):
        params, momentum, value = step(params, momentum, tokens, targets)
    float(value)


def large(lib: Any) -> None:
    """Sums of arrays of 64 MB, memory being kept where a library can be told to."""
    if lib.name == "plait":
        importlib.import_module("plait").config.keep_memory = True
    x = lib.np.ones((64, 512, 512))
    for _ in range(30):
        x = x + x
    x.block_until_ready()


# ---- what peak memory is measured of ---------------------------------------------------------


def donation(lib: Any) -> None:
    """Steps on an array of 256 MB whose memory each step may use."""
    f = lib.jit(lambda x: x * 1.0001 + 1, donate_argnums=(0,))
    x = lib.jit(lambda: lib.np.ones((64, 1024, 1024), lib.np.float32))()
    for _ in range(6):
        x = f(x)
        x.block_until_ready()


_LAYERS, _BATCH, _WIDTH = 32, 16384, 64


def _normal(*shape: int) -> np.ndarray:
    return (np.random.default_rng(0).normal(size=shape) / 8).astype(np.float32)


def _layer(lib: Any) -> Callable[..., Any]:
    return lambda w, x: lib.np.tanh(lib.np.sin(x @ w) * x) + x


def checkpointed(lib: Any) -> None:
    """The gradient of 32 layers, each computed again on the way back."""
    layer = lib.checkpoint(_layer(lib))

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(w, x)
        return lib.np.mean(x * x)

    ws = lib.device_put([_normal(_WIDTH, _WIDTH) for _ in range(_LAYERS)])
    x = lib.device_put(_normal(_BATCH, _WIDTH))
    lib.block_until_ready(lib.jit(lib.grad(loss))(ws, x))


def checkpointed_scan(lib: Any) -> None:
    """The same, scanned."""
    layer = _layer(lib)
    body = lib.checkpoint(lambda x, w: (layer(w, x), None))
    ws = lib.device_put(_normal(_LAYERS, _WIDTH, _WIDTH))
    x = lib.device_put(_normal(_BATCH, _WIDTH))

    def loss(ws: Any, x: Any) -> Any:
        return lib.np.mean(lib.lax.scan(body, x, ws)[0] ** 2)

    lib.block_until_ready(lib.jit(lib.grad(loss))(ws, x))


SESSIONS: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(notebook, analysis, ode_fit, training, transformer, large),
        *(donation, checkpointed, checkpointed_scan),
    )
}


def namespace(name: str) -> types.SimpleNamespace:
    """What sessions ask of a library: what workloads ask, loaded when they ask."""
    measuring = importlib.import_module("measuring")
    return measuring.namespace(name)


def started(python: str, lib: str, session: str, **environment: str) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a fresh process."""
    command = [python, __file__, lib, session]
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def folders(folder: str) -> dict[str, str]:
    """Environment variables by which both libraries keep every compiled program in a folder."""
    return {
        "PLAIT_CACHE_DIR": folder,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def starts(python: str, lib: str, session: str, kinds: set[str]) -> Iterator[tuple[str, float]]:
    """What was measured of one session, by kind: `session` (its first start), `peak` (of memory),
    `again` (its second start), `fast` (its first, by the fast tier)."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, peak = started(python, lib, session, **folders(folder))
        yield f"session:{session}", seconds
        yield f"peak:{session}", peak
        if "again" in kinds:
            yield f"again:{session}", started(python, lib, session, **folders(folder))[0]
    if "fast" in kinds:
        fast = {"PLAIT_TIER": "fast", "PLAIT_CACHE_DIR": ""}  # jax has one tier
        yield f"fast:{session}", started(python, lib, session, **fast)[0]


def main() -> None:
    """Run one session, and print what it cost."""
    lib, name = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    SESSIONS[name](namespace(lib))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([time.process_time(), peak]))


if __name__ == "__main__":
    main()
