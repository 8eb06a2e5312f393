"""The collectives of a compiled program, parsed from the text of its HLO.

Invariant: text that the parser does not understand gives None, never a guess.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .op_lines import Places

__all__ = ["Collective", "collectives_in"]


@dataclass(frozen=True, slots=True)
class Collective:
    """An operation of a compiled program in which devices exchange data.

    Attributes:
      op: its name in XLA: "all-reduce", "all-gather", "reduce-scatter", "all-to-all",
        "collective-permute", ...
      operands: the operands of each device, as texts: "f32[4,8]".
      results: the results of each device.
      bytes: the size of the operands of each device, in one execution.
      groups: the numbers of the devices that exchange data with each other, a tuple for each
        group; for "collective-permute", pairs (from, to).  None where the text has another form.
      name: the names of the functions around it, outermost first.
      where: the line that it comes from, "file.py:12"; None if it comes from no line.
    """

    op: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    bytes: int
    groups: tuple[tuple[int, ...], ...] | None
    name: str
    where: str | None

    def __str__(self) -> str:
        line = f" at {self.where}" if self.where else ""
        return f"{self.op}({', '.join(self.operands)}): {self.bytes} bytes{line}"


_OPS = (
    "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast|"
    "ragged-all-to-all"
)
# The patterns are compiled at first use, not at every import of the package.
_DEFINED = r"^\s*(?:ROOT )?%(?P<name>\S+) = (?P<type>\(.*?\)|\S+) (?P<op>[\w-]+)\("
_COLLECTIVE = rf"(?P<op>{_OPS})(?:-start)?$"
_SHAPE = r"\b([a-z][a-z0-9]*\[[\d,]*\])"
_PERMUTED = r"\[([\d,]+)\](?:T\(([\d,]+)\))?"
_META = r"metadata=\{(.*)\}"


def collectives_in(hlo: str, devices: Sequence[int]) -> list[Collective]:
    """Return the collectives of a program, given as text, that runs on these devices."""
    lines = hlo.splitlines()
    types: dict[str, str] = {}
    found = []
    for line in lines:
        made = re.match(_DEFINED, line)
        if made is None:
            continue
        types[made["name"]] = made["type"]
        exchange = re.match(_COLLECTIVE, made["op"])
        if exchange is not None:
            found.append((line, made, exchange["op"]))
    places = Places(lines)
    return [_read(line, made, op, types, devices, places) for line, made, op in found]


def _read(
    line: str,
    made: re.Match[str],
    op: str,
    types: dict[str, str],
    devices: Sequence[int],
    places: Places,
) -> Collective:
    rest = line[made.end() :]
    given = re.findall(r"%([^\s,()]+)", rest.partition(")")[0])
    operands = tuple([s for g in given for s in re.findall(_SHAPE, types.get(g, ""))])
    results = tuple(re.findall(_SHAPE, made["type"]))
    if made["op"].endswith("-start"):  # its type has the operands before the results
        results = results[len(operands) :] or results
    meta = re.search(_META, rest)
    said = meta[1] if meta else ""
    name = re.search(r'op_name="([^"]*)"', said)
    return Collective(
        op,
        operands,
        results,
        sum(map(_bytes, operands)),
        _numbered(_groups(rest), devices),
        name[1] if name else "",
        places.of(said),
    )


def _bytes(shape: str) -> int:
    """Return the bytes of an array like "f32[4,8]"; elements smaller than a byte are packed."""
    kind, _, sizes = shape.rstrip("]").partition("[")
    digits = re.search(r"\d+", kind)
    bits = 8 if kind == "pred" else int(digits[0]) if digits else 0
    count = math.prod([int(n) for n in sizes.split(",") if n])
    return -(-bits * count // 8)


# ---- groups of devices -------------------------------------------------------------------------


def _groups(text: str) -> list[tuple[int, ...]] | None:
    """Return the groups of an operation, as positions of devices in the order of the program."""
    pairs = re.search(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,{}]*\})?\}", text)
    if pairs is not None:
        each = re.findall(r"\{([\d,]*)\}", pairs[1] or "")
        return [tuple(map(int, e.split(","))) for e in each]
    rows = re.search(r"replica_groups=\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)", text)
    if rows is not None:
        return list(map(tuple, _permuted(rows[2]).reshape(_ints(rows[1])).tolist()))
    return _along_axes(text)


def _along_axes(text: str) -> list[tuple[int, ...]] | None:
    """Return groups that are written as a mesh with its axes, their sizes, and the axes used."""
    said = re.search(
        r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(([^()]*(?:\([\d,]*\))?)\))? \{([^}]*)\}",
        text,
    )
    if said is None or ":" in said[3]:  # sub-axes
        return None
    axes = [part.split("=") for part in said[1].split(",")]
    names, sizes = [a[0] for a in axes], [int(a[1]) for a in axes]
    order = np.arange(math.prod(sizes)) if said[2] is None else _permuted(said[2])
    along = [names.index(n) for n in said[3].split(",")]
    others = [i for i in range(len(names)) if i not in along]
    grid = order.reshape(sizes).transpose(*others, *along)
    return list(map(tuple, grid.reshape(-1, math.prod([sizes[i] for i in along])).tolist()))


def _permuted(text: str) -> np.ndarray:
    """Return the numbers of `[2,4]T(1,0)`: 0 to 7 in that shape, transposed and flattened."""
    found = re.fullmatch(_PERMUTED, text)
    if found is None:
        return np.array(_ints(text))
    grid = np.arange(math.prod(_ints(found[1]))).reshape(_ints(found[1]))
    return (grid.transpose(_ints(found[2])) if found[2] else grid).ravel()


def _ints(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]


def _numbered(
    groups: list[tuple[int, ...]] | None, devices: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    if groups is None:
        return None
    every = groups or [tuple(range(len(devices)))]  # HLO omits a single group of all devices
    return tuple([tuple([devices[i] for i in g]) for g in every])
