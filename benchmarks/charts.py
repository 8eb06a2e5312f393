"""Charts of the comparison, as SVG: speed against jax by group, speed against jax and torch by
operation, and times by size.

Invariant: charts show what the tables hold and nothing else; without matplotlib there are none.
"""

import importlib.util
import statistics
from pathlib import Path
from typing import Any

_BARS = {"jax": "#4477aa", "torch": "#ee7733"}
_LINES = {"plait": "#228833", **_BARS}
GROWTH = importlib.import_module("operations").GROWTH


def draw(groups: dict[str, list], machine: str, folder: Path) -> list[Path]:
    """Write the charts into a folder; return their paths.

    Args:
      groups: the measured lines by group (`run.Line`).
      machine: the name of the machine, which stands below each chart.
      folder: where they go.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return []
    folder.mkdir(exist_ok=True, parents=True)
    grown = {name: label for label, names in GROWTH.items() for name in names.values()}
    means = {
        group.partition(",")[0]: {"jax": statistics.geometric_mean([x.ratio("jax") for x in lines])}
        for group, lines in groups.items()
    }
    beside = {
        x.row.label: {peer: x.ratio(peer) for peer in _BARS}
        for lines in groups.values()
        for x in lines
        if "torch" in x.times and x.row.names[0] not in grown
    }
    found = [_bars(means, "Speed against jax, by group", machine, folder / "groups.svg")]
    if beside:
        title = "Speed against jax and torch, gradients of operations"
        found.append(_bars(beside, title, machine, folder / "operations.svg"))
    times = {x.row.names[0]: x.times for lines in groups.values() for x in lines}
    if grown.keys() <= times.keys():
        found.append(_growth(times, machine, folder / "growth.svg"))
    return found


def _growth(times: dict[str, dict[str, float]], machine: str, path: Path) -> Path:
    """Draw the times of each operation by size, on logarithmic axes, a line for each library."""
    plt = _pyplot()
    figure, panels = plt.subplots(1, len(GROWTH), figsize=(4 * len(GROWTH), 3.6))
    for axes, (label, names) in zip(panels, GROWTH.items()):
        for lib, color in _LINES.items():
            there = {n: times[name][lib] for n, name in names.items() if lib in times[name]}
            if there:
                milliseconds = [1e3 * t for t in there.values()]
                axes.plot(list(there), milliseconds, "o-", color=color, label=lib, markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(list(names), [str(n) for n in names], fontsize=8)
        axes.set_title(f"{label}, gradient", fontsize=10)
    panels[0].set_ylabel("ms")
    panels[0].legend()
    figure.supxlabel(f"size; elapsed time, {machine}", fontsize=8)
    figure.tight_layout()
    return _saved(figure, path)


def _pyplot() -> Any:
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "plait"  # the same numbers give the same file
    return importlib.import_module("matplotlib.pyplot")


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    _pyplot().close(figure)
    return path


def _bars(ratios: dict[str, dict[str, float]], title: str, machine: str, path: Path) -> Path:
    """Draw horizontal bars of ratios on a logarithmic axis, with a line at 1."""
    plt = _pyplot()
    peers = [p for p in _BARS if any(p in r for r in ratios.values())]
    figure, axes = plt.subplots(figsize=(8, 1 + 0.4 * len(ratios)))
    height = 0.8 / len(peers)
    for i, peer in enumerate(peers):
        at = [j + i * height for j in range(len(ratios))]
        values = [r[peer] for r in ratios.values()]
        bars = axes.barh(at, [v - 1 for v in values], height, 1, color=_BARS[peer], label=peer)
        axes.bar_label(bars, [f"{v:.2g}" for v in values], padding=3, fontsize=8)
    axes.set_yticks([j + (len(peers) - 1) * height / 2 for j in range(len(ratios))], list(ratios))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(x=0.1)
    axes.set_title(title)
    axes.set_xlabel(f"times as fast as the peer; CPU time, {machine}", fontsize=8)
    axes.legend()
    return _saved(figure, path)
