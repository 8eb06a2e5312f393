"""Recordings of the runtime's profiler: operations by executable, and their source lines.

Invariant: an operation that two executables of one name share with different lines gets none.
"""

import json
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from plait.ext.profiling import lines_of_operations, module_name

__all__ = ["OperationEvent", "lines_by_module", "operation_events", "with_lines"]


class OperationEvent(NamedTuple):
    """The time that one operation of an executable took, without the operations inside of it."""

    module: str
    op: str
    seconds: float


def lines_by_module(texts: Iterable[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return {module: {operation: {line: share}}} of executables, given as text of HLO."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for text in texts:
        known = found.setdefault(module_name(text), {})
        for op, lines in lines_of_operations(text).items():
            known[op] = lines if known.get(op, lines) == lines else {}
    return found


def operation_events(data: Any) -> list[OperationEvent]:
    """Return the operations among the events of a profile."""
    # The runtime makes a class when events are first read, and Python 3.14 warns that it has no
    # module. Where warnings are errors, that error ends the process.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _operation_events(data)


def _operation_events(data: Any) -> list[OperationEvent]:
    found: list[OperationEvent] = []
    for plane in data.planes:
        for line in plane.lines:
            timed = []
            for e in line.events:
                stats = {k: v for k, v in e.stats if k in ("hlo_op", "hlo_module")}
                if len(stats) == 2 and e.duration_ns > 0:
                    timed.append((e.start_ns, -e.duration_ns, stats["hlo_module"], stats["hlo_op"]))
            found += _without_inner(sorted(timed))
    return found


def _without_inner(timed: list[tuple[float, float, str, str]]) -> list[OperationEvent]:
    """Return events of one thread, each without the time of the events inside of it."""
    out: list[list[Any]] = []
    around: list[tuple[float, int]] = []  # (end, number) of the events that are open
    for start, negative, module, op in timed:
        length = -negative
        while around and around[-1][0] <= start:
            around.pop()
        if around:
            out[around[-1][1]][2] -= length
        around.append((start + length, len(out)))
        out.append([module, op, length])
    return [OperationEvent(m, op, max(t, 0.0) * 1e-9) for m, op, t in out]


def with_lines(events: bytes, texts: Iterable[str]) -> bytes:
    """Return a recording in Chrome's format with the lines of operations, as `source`."""
    recorded, known = json.loads(events), lines_by_module(texts)
    for event in recorded.get("traceEvents", ()):
        args = event.get("args")
        if not isinstance(args, dict) or "hlo_op" not in args:
            continue
        lines = known.get(args.get("hlo_module", ""), {}).get(args["hlo_op"], {})
        if lines:
            most = sorted(lines, key=lambda line: -lines[line])
            args["source"] = ", ".join(most)
            event["name"] = f"{event['name']} ({_short(most[0])})"
    return json.dumps(recorded).encode()


def _short(line: str) -> str:
    return line.replace("\\", "/").rpartition("/")[2]
