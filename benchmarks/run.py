"""The comparison with jax: the same workloads on both, interleaved, as one table.

    python benchmarks/run.py --peer PYTHON_OF_A_JAX_ENVIRONMENT [--rounds 3] [--only a,b]

Every round runs each library in a fresh process, one after the other, with the workloads in a
shuffled order.  What is compared is CPU time: of the main thread where Python is what costs, of
the process where the compiler or the compiled program does.

Invariant: ratios come from one interleaved run; nothing here decides whether a test passes.
"""

import argparse
import gc
import importlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ["PLAIT_CACHE_DIR"] = ""  # compilations are measured, not what was found on disk

TABLE = [  # label, workloads (their times are added), goal as jax's time over ours
    ("import", ["start:import_only"], 2.5),
    ("import + first operation", ["start:first_eager_op"], 3.0),
    ("eager sin(x)", ["eager_np_sin_2x2"], 1.1),
    ("eager x + y", ["eager_operator_add_2x2"], 1.4),
    ("eager x + 1", ["eager_operator_add_pyscalar"], 1.7),
    ("eager where", ["eager_where"], 2.5),
    ("eager x[3]", ["eager_index_static"], 5.0),
    ("eager x.at[3].set", ["eager_at_set"], 15.0),
    ("eager sum over an axis", ["eager_sum_axis"], 1.2),
    ("eager reshape", ["eager_reshape"], 3.0),
    ("eager matmul", ["eager_matmul_2x2"], 1.2),
    ("eager random.normal", ["eager_random_normal"], 2.0),
    ("eager random.split", ["eager_random_split"], 4.0),
    ("eager grad, small", ["eager_grad_small"], 15.0),
    ("eager value_and_grad, MLP", ["eager_value_and_grad_mlp"], 15.0),
    ("eager vmap(grad)", ["eager_vmap_grad_small"], 10.0),
    ("eager grad(grad)", ["eager_grad_grad_small"], 10.0),
    ("eager jvp", ["eager_jvp_small"], 4.0),
    ("eager vmap", ["eager_vmap_small"], 5.0),
    ("eager linearize", ["eager_linearize_small"], 8.0),
    ("jit call, 1 argument", ["jit_dispatch_1_args"], 1.0),
    ("jit call, 10 arguments", ["jit_dispatch_10_args"], 1.1),
    ("jit call, 100 arguments", ["jit_dispatch_100_args"], 1.4),
    ("jit call, 1000 arguments", ["jit_dispatch_1000_args"], 1.0),
    ("jit call, a tree of 100", ["jit_dispatch_pytree_in_100"], 1.0),
    ("jit call, trees in and out", ["jit_dispatch_pytree_inout_100"], 1.0),
    ("jit call, keyword arguments", ["jit_dispatch_kwargs"], 1.0),
    ("jit call, static arguments", ["jit_dispatch_static_args"], 1.0),
    ("jit call, numpy arguments", ["jit_dispatch_numpy_args"], 1.0),
    ("jit call, Python scalars", ["jit_dispatch_pyscalar_args"], 1.0),
    ("jit call, donated", ["jit_dispatch_donated"], 1.0),
    ("compiled object", ["aot_compiled_call"], 1.0),
    ("jit_add_chain: trace", ["jit_add_chain_trace"], 8.0),
    ("jit_add_chain: trace + lower", ["jit_add_chain_trace", "jit_add_chain_lower"], 12.0),
    ("jit_add_chain: all", ["jit_add_chain"], 1.2),
    ("jit of the same function again", ["rejit_same_function"], 4.0),
    ("an equal function defined again", ["retrace_after_redefinition"], 5.0),
    ("trace 2000 operations (lax)", ["trace_lax2000"], 6.0),
    ("trace 2000 operations (numpy)", ["trace_elementwise2000"], 12.0),
    ("trace jvp of 2000", ["trace_jvp_elem2000"], 9.0),
    ("trace vmap of 2000", ["trace_vmap_elem2000"], 12.0),
    ("trace grad of 2000", ["trace_grad_elem2000"], 15.0),
    ("trace hessian of an MLP", ["trace_hessian_mlp"], 12.0),
    ("trace a transformer step", ["trace_tf12_step_unrolled"], 10.0),
    ("trace the same, scanned", ["trace_tf12_step_scanned"], 6.0),
    ("trace a convnet gradient", ["trace_convnet_grad"], 6.0),
    ("lower a transformer step", ["lower_tf12_step_unrolled"], 6.0),
    ("lower grad of 2000", ["lower_grad_elem2000"], 6.0),
    ("lower a convnet gradient", ["lower_convnet_grad"], 6.0),
    ("compile an MLP gradient", ["compile_mlp_grad"], 1.0),
    ("compile a convnet gradient", ["compile_convnet_grad"], 1.0),
    ("compile an MLP gradient, fast tier", ["compile_fast_mlp_grad"], 1.8),
    ("compile a convnet gradient, fast tier", ["compile_fast_convnet_grad"], 1.8),
    ("run a chain of matmuls", ["run_heavy_matmul_chain"], 0.97),
    ("run a convnet gradient", ["run_heavy_convnet_grad"], 0.97),
    ("run a transformer step, small", ["run_tf12_step_unrolled_small"], 0.97),
    ("sums of sizes that differ, 13 % full", ["ragged_sum"], 8.0),
    ("MLP and sum of them", ["ragged_mlp"], 9.0),
    ("gradient of that", ["ragged_mlp_grad"], 7.0),
    ("RNN of them", ["ragged_rnn"], 6.0),
    ("gradient of that", ["ragged_rnn_grad"], 7.0),
    ("attention of them", ["ragged_attention"], 12.0),
    ("gradient of that", ["ragged_attention_grad"], 10.0),
    ("MLP and sum, all full", ["ragged_mlp_full"], 0.95),
    ("gradient of that", ["ragged_mlp_grad_full"], 0.95),
    ("RNN, all full", ["ragged_rnn_full"], 0.95),
    ("gradient of that", ["ragged_rnn_grad_full"], 0.95),
    ("attention, all full", ["ragged_attention_full"], 0.95),
    ("gradient of that", ["ragged_attention_grad_full"], 0.95),
    ("numpy -> device, small", ["device_put_numpy_1"], 4.0),
]


def namespace(name: str) -> types.SimpleNamespace:
    """What the workloads ask of a library, from its public names."""
    m = importlib.import_module(name)
    lib = types.SimpleNamespace()
    lib.np = importlib.import_module(name + ".numpy")
    for part in ("random", "tree", "lax"):
        setattr(lib, part, importlib.import_module(f"{name}.{part}"))
    for k in [
        "jit",
        "grad",
        "value_and_grad",
        "vmap",
        "jvp",
        "vjp",
        "linearize",
        "make_jaxpr",
        "jacfwd",
        "jacrev",
        "eval_shape",
        "checkpoint",
        "custom_vjp",
        "block_until_ready",
        "clear_caches",
    ]:
        setattr(lib, k, getattr(m, k))
    lib.Pile, lib.pile_axis = getattr(m, "Pile", None), getattr(m, "pile_axis", None)
    lib.device_put = m.device_put
    lib.stage_trace = lambda j, *a: j.trace(*a)
    # Plait lowers when somebody asks for the module: make it do so here
    lib.stage_lower = _forced if name == "plait" else (lambda t: t.lower())
    lib.stage_compile = lambda x: x.compile()
    # jax has one tier
    lib.stage_compile_fast = (
        (lambda x: x.compile(tier="fast")) if name == "plait" else lib.stage_compile
    )
    return lib


def _forced(traced):
    lowered = traced.lower()
    lowered.module()
    return lowered


def measure(lib, w, elapsed: bool = False) -> list[float]:
    """Samples of seconds of CPU per operation; or of elapsed time."""
    made = w.setup(lib)
    whole = w.group in ("compile", "cache", "ragged", "run") or "threaded" in w.name
    cpu, wall = time.process_time if whole else time.thread_time, time.perf_counter
    if elapsed:
        cpu = wall
    prepare, run = made if isinstance(made, tuple) else (None, made)
    out: list[float] = []
    if prepare is not None:
        if w.max_samples > 1:
            run(prepare())
        end = wall() + w.budget
        while len(out) < w.max_samples and (len(out) < 3 or wall() < end):
            state = prepare()
            gc.collect(0)
            start = cpu()
            result = run(state)
            out.append((cpu() - start) / w.per)
            del state, result
            if w.max_samples == 1:
                break
        return out
    lib.block_until_ready(run())
    start = wall()
    lib.block_until_ready(run())
    n = max(1, int(0.03 / max(wall() - start, 1e-7)))
    end = wall() + w.budget
    while len(out) < max(w.max_samples, 9) and (len(out) < 3 or wall() < end):
        start = cpu()
        for _ in range(n):
            y = run()
        if w.group in ("eager", "dispatch", "eager_ad", "run"):
            lib.block_until_ready(y)
        out.append((cpu() - start) / n / w.per)
    return out


def child(arguments) -> None:
    """Measure in this process; samples go to a file."""
    sys.path.insert(0, str(HERE))
    workloads = importlib.import_module("workloads")
    lib = namespace(arguments.child)
    names = [n for n in wanted(arguments) if n in workloads.WORKLOADS]
    random.Random(arguments.seed).shuffle(names)
    found = {}
    for name in names:
        gc.collect()
        try:
            found[name] = measure(lib, workloads.WORKLOADS[name], arguments.elapsed)
        except Exception as e:  # one library may lack what another has
            found[name] = f"{type(e).__name__}: {e}"[:200]
    Path(arguments.json).write_text(json.dumps(found))


def wanted(arguments) -> list[str]:
    """Names of the workloads that rows of the table ask for."""
    names = [n for _, ns, _ in TABLE for n in ns if not n.startswith("start:")]
    if arguments.only:
        parts = arguments.only.split(",")
        names = [n for n in names if any(p in n for p in parts)]
    return list(dict.fromkeys(names))


STARTS = {"import_only": "", "first_eager_op": "(lib.np.ones(3) + 1).block_until_ready()"}


def start(python: str, lib: str, code: str) -> float | None:
    """CPU seconds of a fresh process that imports the library and runs some code."""
    source = (
        "import time, importlib, types\nt = time.process_time()\n"
        f"lib = types.SimpleNamespace(m=importlib.import_module({lib!r}))\n"
        f"lib.np = importlib.import_module({lib + '.numpy'!r})\n{code}\n"
        "print('SECONDS', time.process_time() - t)"
    )
    done = subprocess.run([python, "-c", source], capture_output=True, text=True, check=False)
    return float(done.stdout.split("SECONDS")[1]) if "SECONDS" in done.stdout else None


def collect(arguments) -> tuple[dict, dict]:
    """Minimum of CPU seconds per workload and library; errors."""
    libs = [("plait", sys.executable), ("jax", arguments.peer)]
    best: dict = {}
    errors: dict = {}
    for r in range(arguments.rounds):
        for lib, python in libs if r % 2 == 0 else libs[::-1]:
            with tempfile.NamedTemporaryFile(suffix=".json") as f:
                command = [python, __file__, "--child", lib, "--json", f.name, "--seed", str(r)]
                command += ["--only", arguments.only] if arguments.only else []
                command += ["--elapsed"] if arguments.elapsed else []
                subprocess.run(command, check=True)
                found = json.loads(Path(f.name).read_text())
            for name, samples in found.items():
                if isinstance(samples, str):
                    errors[lib, name] = samples
                else:
                    best.setdefault(name, {}).setdefault(lib, []).append(min(samples))
            for name, code in STARTS.items():
                if arguments.only and not any(p in name for p in arguments.only.split(",")):
                    continue
                for _ in range(2):
                    seconds = start(python, lib, code)
                    if seconds is not None:
                        best.setdefault("start:" + name, {}).setdefault(lib, []).append(seconds)
    return {n: {k: min(v) for k, v in by.items()} for n, by in best.items()}, errors


def shown(seconds: float) -> str:
    """A time with its unit."""
    for unit, size in (("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if seconds < size * 1000:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def report(best: dict, errors: dict) -> str:
    """The table, in Markdown."""
    rows = ["| what | jax | plait | jax / plait | goal | met |", "|---|---|---|---|---|---|"]
    ratios = []
    for label, names, goal in TABLE:
        if not all(n in best and len(best[n]) == 2 for n in names):
            continue
        jax, plait = (sum(best[n][lib] for n in names) for lib in ("jax", "plait"))
        ratio = jax / plait
        ratios.append(ratio)
        met = "yes" if ratio >= goal else "no"
        cells = (label, shown(jax), shown(plait), f"{ratio:.2f}", f"{goal:g}", met)
        rows.append("| " + " | ".join(cells) + " |")
    if ratios:
        rows.append(f"\nGeometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}.")
    rows += [f"\nNot measured: {lib}, {name}: {text}" for (lib, name), text in errors.items()]
    return "\n".join(rows)


def main() -> None:
    """Run the comparison, print the table and write it to RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="the Python of an environment with jax")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="parts of names of workloads, by commas")
    parser.add_argument("--elapsed", action="store_true", help="time that passes, for accelerators")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--json", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    table = report(*collect(arguments))
    print(table)
    if arguments.only:
        return
    about = (
        f"# Plait against jax\n\nMinimum CPU time over {arguments.rounds} interleaved rounds; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, CPU "
        "backend. A ratio above 1 means that Plait takes less time.\n\n"
    )
    (HERE / "RESULTS.md").write_text(about + table + "\n")


if __name__ == "__main__":
    main()
