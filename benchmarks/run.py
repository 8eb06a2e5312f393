"""The comparison with jax and torch: the same workloads on each, interleaved, as one table.

    python benchmarks/run.py --peer PYTHON_OF_A_JAX_ENVIRONMENT [--torch PYTHON_OF_ONE_WITH_TORCH]
        [--quick] [--rounds 2] [--only a,b] [--group Tracing] [--elapsed]

torch has a column where `operations.py` has its form of a row.  Every round runs each library in a
fresh process, one after the other, with the workloads in a shuffled order; all have their bytecode
compiled, and find no compiled programs but where a row says so.

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
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
rows = importlib.import_module("rows")
sessions = importlib.import_module("sessions")
charts = importlib.import_module("charts")
os.environ["PLAIT_CACHE_DIR"] = ""  # compilations are measured, not what was found on disk

STARTS = {"import_only": "", "first_eager_op": "(lib.np.ones(3) + 1).block_until_ready()"}
LIBRARIES = "plait", "jax", "torch"
CHARTS = "docs/assets/speed"
"""The folder of the charts, where the documentation shows them too."""
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
    elapsed: bool = False,
) -> dict:
    """Samples of workloads, from one process; times that pass if `elapsed`, else of processors."""
    if not names:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        command = [python, str(HERE / "measuring.py"), lib, f.name, str(seed), ",".join(names)]
        command += ["--elapsed"] if elapsed or arguments.elapsed else []
        command += ["--one-core"] if one_core else []
        command += ["--budget", "0.5"] if arguments.quick else []
        subprocess.run(command, check=True)
        return json.loads(Path(f.name).read_text())


def collect(arguments: argparse.Namespace, asked: dict[str, list]) -> tuple[Samples, dict]:
    """The smallest sample of each round, by workload and library; errors."""
    libs = [("plait", sys.executable), ("jax", arguments.peer)]
    libs += [("torch", arguments.torch)] if arguments.torch else []
    for _, python in libs:
        compile_bytecode(python)
    names = list(dict.fromkeys(n for every in asked.values() for r in every for n in r.names))
    inside = [n for n in names if ":" not in n]
    # many small loops: threads that wait for each other would be counted, too
    on_one_core = [n for n in inside if n.startswith("ragged_")]
    # libraries divide these among threads, which costs CPU time and saves time
    by_clock = [n for n in inside if n.startswith("op_")]
    anywhere = [n for n in inside if n not in {*on_one_core, *by_clock}]
    best: Samples = {}
    errors: dict[tuple[str, str], str] = {}
    for r in range(arguments.rounds):
        for lib, python in libs if r % 2 == 0 else libs[::-1]:
            found = measured(python, lib, by_clock, r, arguments, elapsed=True)
            if lib != "torch":
                found |= measured(python, lib, anywhere, r, arguments)
                found |= measured(python, lib, on_one_core, r, arguments, one_core=True)
            for name, samples in found.items():
                if isinstance(samples, str):
                    errors[lib, name] = samples
                else:
                    best.setdefault(name, {}).setdefault(lib, []).append(min(samples))
            apart = [] if lib == "torch" else [n for n in names if ":" in n]
            for name, value in processes(python, lib, apart):
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


class Line(NamedTuple):
    """A row as it was measured: the least time of each library, and by how much rounds differ."""

    row: Any
    times: dict[str, float]
    spread: float

    def ratio(self, peer: str) -> float:
        """Return the time of a peer by Plait's."""
        return self.times[peer] / max(self.times["plait"], 1e-12)


def lines_of(every: list, best: Samples) -> list[Line]:
    """Return the rows of a group that both Plait and jax have."""
    found = []
    for row in every:
        libs = [x for x in LIBRARIES if all(x in best.get(n, {}) for n in row.names)]
        if "plait" in libs and "jax" in libs:
            times = {x: sum(min(best[n][x]) for n in row.names) for x in libs}
            found.append(Line(row, times, max(noise(best[n][x]) for n in row.names for x in libs)))
    return found


def table_of(lines: list[Line]) -> list[str]:
    """Return the table of a group, with columns for torch if it has one of the rows."""
    peers = [x for x in LIBRARIES[1:] if any(x in line.times for line in lines)]
    heads = ["what", *peers, "plait", *[f"{x} / plait" for x in peers], "noise", "goal", "met"]
    out = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for line in lines:
        label, names, goal, _ = line.row
        there = [x in line.times for x in peers]
        cells = [label]
        cells += [shown(line.times[x], names) if t else "" for x, t in zip(peers, there)]
        cells += [shown(line.times["plait"], names)]
        cells += [f"{line.ratio(x):.2f}" if t else "" for x, t in zip(peers, there)]
        met = "" if goal is None else "yes" if line.ratio("jax") >= goal else "no"
        cells += [f"{100 * line.spread:.0f} %", "" if goal is None else f"{goal:g}", met]
        out.append("| " + " | ".join(cells) + " |")
    return out


def report(groups: dict[str, list[Line]], errors: dict) -> str:
    """Return the tables, in Markdown."""
    lines: list[str] = []
    for group, every in groups.items():
        lines += [f"\n## {group}\n", *table_of(every)]
    every = [line for found in groups.values() for line in found]
    if every:
        short = sum(x.row.goal is not None and x.ratio("jax") < x.row.goal for x in every)
        mean = statistics.geometric_mean([x.ratio("jax") for x in every])
        lines.append(f"\n{len(every)} rows, {short} below their goal; geometric mean of the ")
        lines[-1] += f"ratios: {mean:.2f}."
    lines += [f"\nNot measured: {lib}, {name}: {text}" for (lib, name), text in errors.items()]
    return "\n".join(lines).strip()


def machine() -> str:
    """Return the name of the processor and the number of cores."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        name = names[0].partition(":")[2].strip() if names else name
    return f"{name}, {os.cpu_count()} cores"


def main() -> None:
    """Run the comparison, print the table, and write it to RESULTS.md if it is whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="the Python of an environment with jax")
    parser.add_argument("--torch", help="the Python of an environment with torch")
    parser.add_argument("--rounds", type=int, help="2 unless given")
    parser.add_argument("--quick", action="store_true", help="a third of the rows, in five minutes")
    parser.add_argument("--only", help="parts of names of workloads, by commas")
    parser.add_argument("--group", help="parts of names of groups, by commas")
    parser.add_argument("--elapsed", action="store_true", help="time that passes, for accelerators")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or 2
    asked = wanted(arguments)
    best, errors = collect(arguments, asked)
    groups = {group: lines_of(every, best) for group, every in asked.items()}
    groups = {group: lines for group, lines in groups.items() if lines}
    table = report(groups, errors)
    print(table)
    if arguments.only or arguments.group or arguments.quick:
        return
    place = f"{machine()}, Python {platform.python_version()}"
    about = (
        f"# Plait against jax and torch\n\nMinimum CPU time over {arguments.rounds} interleaved "
        f"rounds, and minimum elapsed time for gradients of operations; {place}, CPU backend. A "
        "ratio above 1 means that Plait takes less time; noise is by how much the "
        "rounds of one library differ, at most.\n\n"
    )
    pictures = charts.draw(groups, place, HERE.parent / CHARTS)
    about += "".join(f"![{p.stem}](../{CHARTS}/{p.name})\n\n" for p in pictures)
    (HERE / "RESULTS.md").write_text(about + table + "\n")


if __name__ == "__main__":
    main()
