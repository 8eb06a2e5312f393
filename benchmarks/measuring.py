"""One library measured in this process: samples of each workload.

    python benchmarks/measuring.py LIBRARY FILE SEED NAMES [--elapsed] [--one-core]

Invariant: what is compared is CPU time: of the main thread where Python is what costs, of the
process where the compiler or the compiled program does.
"""

import argparse
import gc
import importlib
import json
import os
import random
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = (
    *("jit", "grad", "value_and_grad", "vmap", "jvp", "vjp", "linearize", "make_jaxpr", "jacfwd"),
    *("jacrev", "eval_shape", "checkpoint", "custom_vjp", "block_until_ready", "clear_caches"),
    "device_put",
)

OF_THE_PROCESS = ("compile", "cache", "ragged", "run", "start")
"""Groups of workloads whose time is that of all threads."""

WAITED_FOR = ("eager", "dispatch", "eager_ad", "run")
"""Groups of workloads whose last result is waited for."""


def namespace(name: str) -> types.SimpleNamespace:
    """Return the public names of a library that workloads use; torch needs none."""
    if name == "torch":
        return types.SimpleNamespace(name=name, block_until_ready=lambda y: y)
    m = importlib.import_module(name)
    lib = types.SimpleNamespace(name=name)
    lib.np = importlib.import_module(name + ".numpy")
    for part in ("random", "tree", "lax", "nn"):
        setattr(lib, part, importlib.import_module(f"{name}.{part}"))
    for k in NAMES:
        setattr(lib, k, getattr(m, k))
    lib.Pile, lib.pile_axis = getattr(m, "Pile", None), getattr(m, "pile_axis", None)
    lib.reroll = getattr(m, "reroll", lambda f: f)
    lib.stage_trace = lambda j, *a: j.trace(*a)
    # Plait lowers when somebody asks for the module: make it do so here
    lib.stage_lower = _forced if name == "plait" else (lambda t: t.lower())
    lib.stage_compile = lambda x: x.compile()
    # jax has one tier
    lib.stage_compile_fast = (
        (lambda x: x.compile(tier="fast")) if name == "plait" else lib.stage_compile
    )
    return lib


def _forced(traced: Any) -> Any:
    lowered = traced.lower()
    lowered.module()
    return lowered


def operations() -> Any:
    """The operations that torch has too."""
    return importlib.import_module("operations")


def measure(lib: Any, w: Any, elapsed: bool = False) -> list[float]:
    """Samples of seconds per operation; for rows of memory, of bytes."""
    if w.group == "memory":
        return [w.setup(lib)]
    made = operations().of_torch(w.name) if lib.name == "torch" else w.setup(lib)
    whole = w.group in OF_THE_PROCESS or "threaded" in w.name
    clock = time.process_time if whole else time.thread_time
    if elapsed:
        clock = time.perf_counter
    if isinstance(made, tuple):
        return _prepared(*made, w, clock)
    return _repeated(lib, made, w, clock)


def _prepared(prepare: Callable, run: Callable, w: Any, clock: Callable) -> list[float]:
    out: list[float] = []
    if w.max_samples > 1:
        run(prepare())
    end = time.perf_counter() + w.budget
    while len(out) < w.max_samples and (len(out) < 3 or time.perf_counter() < end):
        state = prepare()
        gc.collect(0)
        start = clock()
        result = run(state)
        out.append((clock() - start) / w.per)
        del state, result
        if w.max_samples == 1:
            break
    return out


def _repeated(lib: Any, run: Callable, w: Any, clock: Callable) -> list[float]:
    out: list[float] = []
    lib.block_until_ready(run())
    start = time.perf_counter()
    lib.block_until_ready(run())
    n = max(1, int(0.03 / max(time.perf_counter() - start, 1e-7)))
    end = time.perf_counter() + w.budget
    while len(out) < max(w.max_samples, 9) and (len(out) < 3 or time.perf_counter() < end):
        start = clock()
        for _ in range(n):
            y = run()
        if w.group in WAITED_FOR:
            lib.block_until_ready(y)
        out.append((clock() - start) / n / w.per)
    return out


def main() -> None:
    """Measure in this process; samples go to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lib")
    parser.add_argument("file", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("names")
    parser.add_argument("--elapsed", action="store_true")
    parser.add_argument("--one-core", action="store_true", help="run on the first core alone")
    parser.add_argument("--budget", type=float, default=1.0, help="times that of each workload")
    arguments = parser.parse_args()
    if arguments.one_core and hasattr(os, "sched_setaffinity"):
        # before the runtime makes as many threads as there are cores
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    operations()  # registers its workloads
    workloads = importlib.import_module("workloads").WORKLOADS
    lib = namespace(arguments.lib)
    names = [n for n in arguments.names.split(",") if n in workloads]
    random.Random(arguments.seed).shuffle(names)
    found: dict[str, list[float] | str] = {}
    for name in names:
        gc.collect()
        workloads[name].budget *= arguments.budget
        try:
            found[name] = measure(lib, workloads[name], arguments.elapsed)
        except Exception as e:  # one library may lack what another has
            found[name] = f"{type(e).__name__}: {e}"[:200]
    arguments.file.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
