"""The source lines of the operations of a compiled program, parsed from the text of its HLO.

Invariant: text that the parser does not understand gives no line, never a guess.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Places", "lines_of_operations", "module_name"]

_TABLES = ("FileNames", "FileLocations", "StackFrames", "FunctionNames")
# The patterns are compiled at first use, not at every import of the package.
_COMPUTATION = r"^(?:ENTRY )?%?(?P<name>[\w.<>$-]+) \(.*\{$"
_DEFINED = r"^\s+(?:ROOT )?%?(?P<name>\S+) = (?P<type>\(.*?\)|\S+) (?P<op>[\w-]+)\("
_META = r"metadata=\{(.*?)\}"
_SIZES = r"\[([\d,]*)\]"


class Places:
    """The source lines of operations, from tables at the head of the text, by number."""

    def __init__(self, lines: Sequence[str]):
        self._tables: dict[str, dict[int, str]] = {}
        table: dict[int, str] | None = None
        for line in lines:
            if line in _TABLES:
                table = self._tables[line] = {}
            elif table is not None:
                number, _, rest = line.partition(" ")
                if number.isdecimal():
                    table[int(number)] = rest
                elif line:
                    break

    def of(self, metadata: str) -> str | None:
        """Return the line of an operation with this metadata, as "file.py:12"."""
        for frame in _numbers(metadata, "stack_frame_id"):
            for location in _numbers(self._row("StackFrames", frame), "file_location_id"):
                row = self._row("FileLocations", location)
                for file, line in zip(_numbers(row, "file_name_id"), _numbers(row, " line")):
                    name = self._row("FileNames", file).strip('"')
                    return f"{name}:{line}"
        told = re.search(r'source_file="([^"]*)" source_line=(\d+)', metadata)
        return f"{told[1]}:{told[2]}" if told else None

    def _row(self, table: str, number: int) -> str:
        return self._tables.get(table, {}).get(number, "")


def module_name(hlo: str) -> str:
    """Return the name of a module, given as text."""
    found = re.match(r"HloModule ([^,\s]+)", hlo)
    return found[1] if found else ""


def lines_of_operations(hlo: str) -> dict[str, dict[str, float]]:
    """Return {operation: {line: share}} for the operations of a program whose lines are known.

    The shares of one operation sum to 1.  An operation that is fused of several has the lines of
    all, with shares by the sizes of their results, and more for operations that contract.
    """
    rows = hlo.splitlines()
    places = Places(rows)
    inside: dict[str, list[tuple[str | None, float]]] = defaultdict(list)
    defined: list[tuple[str, str, str]] = []
    computation = ""
    for row in rows:
        head = re.match(_COMPUTATION, row)
        if head is not None:
            computation = head["name"]
            continue
        made = re.match(_DEFINED, row)
        if made is None:
            continue
        meta = re.search(_META, row)
        line = places.of(meta[1]) if meta else None
        inside[computation].append((line, _weight(made["type"], made["op"])))
        defined.append((made["name"], row, line or ""))
    return {name: found for name, row, line in defined if (found := _shares(row, line, inside))}


def _weight(result: str, op: str) -> float:
    """Return a rough measure of the work of an operation inside of a fusion."""
    if op in ("parameter", "constant", "bitcast", "tuple", "get-tuple-element"):
        return 0.0
    elements = sum(math.prod([int(n) for n in s.split(",") if n])
                   for s in re.findall(_SIZES, result))  # fmt: skip
    return float(elements) * (64.0 if op in ("dot", "convolution") else 1.0)


def _shares(
    row: str, line: str, inside: Mapping[str, Sequence[tuple[str | None, float]]]
) -> dict[str, float]:
    called = re.search(r"\bfusion\(.*calls=%?([\w.<>$-]+)", row)
    parts = [(at, w) for at, w in inside.get(called[1], ()) if at and w] if called else []
    if not parts:
        return {line: 1.0} if line else {}
    whole, found = sum(w for _, w in parts), defaultdict[str, float](float)
    for at, w in parts:
        found[at] += w / whole
    return dict(found)


def _numbers(text: str, key: str) -> Iterator[int]:
    for found in re.finditer(rf"{key}=(\d+)", text):
        yield int(found[1])
        return
