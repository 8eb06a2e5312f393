"""Charts of the comparison, as SVG: speed against jax by group, and against torch by operation.

Invariant: charts show the ratios of the tables and nothing else; without matplotlib there are none.
"""

import importlib.util
import statistics
from pathlib import Path
from typing import Any

_BARS = {"jax": "#4477aa", "torch": "#ee7733"}


def draw(groups: dict[str, list], machine: str, folder: Path) -> list[Path]:
    """Write the charts into a folder; return their paths.

    Args:
      groups: the measured lines by group (`run.Line`).
      machine: the name of the machine, which stands below each chart.
      folder: where they go.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return []
    folder.mkdir(exist_ok=True)
    means = {
        group.partition(",")[0]: {"jax": statistics.geometric_mean([x.ratio("jax") for x in lines])}
        for group, lines in groups.items()
    }
    beside = {
        x.row.label: {peer: x.ratio(peer) for peer in _BARS}
        for lines in groups.values()
        for x in lines
        if "torch" in x.times
    }
    found = [_bars(means, "Speed against jax, by group", machine, folder / "groups.svg")]
    if beside:
        title = "Speed against jax and torch, gradients of operations"
        found.append(_bars(beside, title, machine, folder / "operations.svg"))
    return found


def _bars(ratios: dict[str, dict[str, float]], title: str, machine: str, path: Path) -> Path:
    """Draw horizontal bars of ratios on a logarithmic axis, with a line at 1."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "plait"  # the same numbers give the same file
    plt: Any = importlib.import_module("matplotlib.pyplot")
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
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return path
