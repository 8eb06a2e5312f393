"""The comparison with jax: the same workloads on both, interleaved, as one table.

    python benchmarks/run.py --peer PYTHON_OF_A_JAX_ENVIRONMENT [--quick] [--rounds 3]
        [--only a,b] [--group Tracing] [--elapsed]

Every round runs each library in a fresh process, one after the other, with the workloads in a
shuffled order; both have their bytecode compiled, and find no compiled programs but where a row
says so.

Invariant: ratios come from one interleaved run; nothing here decides whether a test passes.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
rows = importlib.import_module("rows")
sessions = importlib.import_module("sessions")
os.environ["PLAIT_CACHE_DIR"] = ""  # compilations are measured, not what was found on disk

STARTS = {"import_only": "", "first_eager_op": "(lib.np.ones(3) + 1).block_until_ready()"}
Samples = dict[str, dict[str, list[float]]]


def wanted(arguments: argparse.Namespace) -> dict[str, list]:
    """The rows that are asked for, by group."""
    found = {}
    for group, every in rows.GROUPS.items():
        if arguments.group and not any(
            g.lower() in group.lower() for g in arguments.group.split(",")
        ):
            continue
        asked = [
            r
            for r in every
            if (r.quick or not arguments.quick)
            and (
                not arguments.only
                or any(p in n for p in arguments.only.split(",") for n in r.names)
            )
        ]
        if asked:
            found[group] = asked
    return found


def compile_bytecode(python: str) -> None:
    """Make all of an environment start from compiled bytecode, as an installer leaves it."""
    source = (
        "import compileall, sysconfig\n"
        "compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"
    )
    subprocess.run([python, "-c", source], check=False)


def start(python: str, lib: str, code: str) -> float:
    """CPU seconds of a fresh process that imports the library and runs some code."""
    source = (
        "import time, importlib, types\nt = time.process_time()\n"
        f"lib = types.SimpleNamespace(m=importlib.import_module({lib!r}))\n"
        f"lib.np = importlib.import_module({lib + '.numpy'!r})\n{code}\n"
        "print('SECONDS', time.process_time() - t)"
    )
    done = subprocess.run([python, "-c", source], capture_output=True, text=True, check=True)
    return float(done.stdout.split("SECONDS")[1])


def processes(python: str, lib: str, names: list[str]) -> Iterator[tuple[str, float]]:
    """Rows that processes of their own measure."""
    for name in names:
        kind, _, what = name.partition(":")
        if kind == "start":
            yield name, min(start(python, lib, STARTS[what]) for _ in range(2))
    for session in sessions.SESSIONS:
        kinds = {n.partition(":")[0] for n in names if n.partition(":")[2] == session}
        if kinds:
            yield from sessions.starts(python, lib, session, kinds)


def measured(
    python: str,
    lib: str,
    names: list[str],
    seed: int,
    arguments: argparse.Namespace,
    one_core: bool = False,
) -> dict:
    """Samples of workloads, from one process."""
    if not names:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        command = [python, str(HERE / "measuring.py"), lib, f.name, str(seed), ",".join(names)]
        command += ["--elapsed"] if arguments.elapsed else []
        command += ["--one-core"] if one_core else []
        command += ["--budget", "0.5"] if arguments.quick else []
        subprocess.run(command, check=True)
        return json.loads(Path(f.name).read_text())


def collect(arguments: argparse.Namespace, asked: dict[str, list]) -> tuple[Samples, dict]:
    """The smallest sample of each round, by workload and library; errors."""
    libs = [("plait", sys.executable), ("jax", arguments.peer)]
    for _, python in libs:
        compile_bytecode(python)
    names = list(dict.fromkeys(n for every in asked.values() for r in every for n in r.names))
    inside = [n for n in names if ":" not in n]
    # many small loops: threads that wait for each other would be counted, too
    on_one_core = [n for n in inside if n.startswith("ragged_")]
    anywhere = [n for n in inside if n not in on_one_core]
    best: Samples = {}
    errors: dict[tuple[str, str], str] = {}
    for r in range(arguments.rounds):
        for lib, python in libs if r % 2 == 0 else libs[::-1]:
            found = {
                **measured(python, lib, anywhere, r, arguments),
                **measured(python, lib, on_one_core, r, arguments, one_core=True),
            }
            for name, samples in found.items():
                if isinstance(samples, str):
                    errors[lib, name] = samples
                else:
                    best.setdefault(name, {}).setdefault(lib, []).append(min(samples))
            for name, value in processes(python, lib, [n for n in names if ":" in n]):
                best.setdefault(name, {}).setdefault(lib, []).append(value)
    return best, errors


def shown(value: float, names: tuple[str, ...]) -> str:
    """A time, or memory, with its unit."""
    if names[0].startswith("peak:"):
        return f"{value:.0f} MB"
    if names[0].startswith("bytes_"):
        return f"{value / 1e6:.3g} MB"
    for unit, size in (("us", 1e-6), ("ms", 1e-3)):
        if value < size * 1000:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s"


def noise(samples: list[float]) -> float:
    """By how much rounds differ: their median over their minimum, less one."""
    return statistics.median(samples) / max(min(samples), 1e-12) - 1


def report(asked: dict[str, list], best: Samples, errors: dict) -> str:
    """The table, in Markdown."""
    lines, ratios, short = [], [], 0
    for group, every in asked.items():
        lines += [f"\n## {group}\n", "| what | jax | plait | jax / plait | noise | goal | met |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for label, names, goal, _ in every:
            if not all(len(best.get(n, {})) == 2 for n in names):
                continue
            jax, plait = (sum(min(best[n][lib]) for n in names) for lib in ("jax", "plait"))
            ratio = jax / max(plait, 1e-12)
            ratios.append(ratio)
            spread = max(noise(best[n][lib]) for n in names for lib in ("jax", "plait"))
            short += goal is not None and ratio < goal
            met = "" if goal is None else "yes" if ratio >= goal else "no"
            cells = (label, shown(jax, names), shown(plait, names), f"{ratio:.2f}")
            cells += (f"{100 * spread:.0f} %", "" if goal is None else f"{goal:g}", met)
            lines.append("| " + " | ".join(cells) + " |")
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines.append(f"\n{len(ratios)} rows, {short} below their goal; geometric mean of the ")
        lines[-1] += f"ratios: {mean:.2f}."
    lines += [f"\nNot measured: {lib}, {name}: {text}" for (lib, name), text in errors.items()]
    return "\n".join(lines).strip()


def main() -> None:
    """Run the comparison, print the table, and write it to RESULTS.md if it is whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="the Python of an environment with jax")
    parser.add_argument("--rounds", type=int, help="3, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a third of the rows, in five minutes")
    parser.add_argument("--only", help="parts of names of workloads, by commas")
    parser.add_argument("--group", help="parts of names of groups, by commas")
    parser.add_argument("--elapsed", action="store_true", help="time that passes, for accelerators")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 3)
    asked = wanted(arguments)
    table = report(asked, *collect(arguments, asked))
    print(table)
    if arguments.only or arguments.group or arguments.quick:
        return
    about = (
        f"# Plait against jax\n\nMinimum CPU time over {arguments.rounds} interleaved rounds; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, CPU "
        "backend. A ratio above 1 means that Plait takes less time; noise is by how much the "
        "rounds of one library differ, at most.\n\n"
    )
    (HERE / "RESULTS.md").write_text(about + table + "\n")


if __name__ == "__main__":
    main()
