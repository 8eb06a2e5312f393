"""The matrix of primitives and rule tables, generated from the installed packages.

Invariant: a cell names the source of a rule as the table itself finds it; nothing is maintained by
hand.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from plait.errors import PluginError
from plait.ext import Carrier, PlaitError, Primitive, RuleTable, expand_rules, lower_rules
from plait.ext.ir import primitives
from plait.ext.plugins import declared, load, names
from plait.ext.rules import tables

__all__ = ["coverage", "matrix", "matrix_text"]

OWN, TRAIT, EXPAND, WIRING = "own", "trait", "expand", "wiring"
MISSING, NOT_APPLICABLE, BROKEN = "missing", "not applicable", "broken"


def coverage(table_name: str) -> dict[str, str]:
    """Return the source of a table's rule for each installed primitive.

    Returns:
      {name of the primitive: cell}, in order of names.  A cell is
      "own": a rule for this very primitive;
      "trait": the rule of one of its traits;
      "expand": no rule, but an expansion into other primitives;
      "wiring": none is needed: it holds programs, and the core transforms these;
      "not applicable": the table is never consulted: its law excludes the primitive, it has no
      operands, or the binder of its axis lowers it;
      "missing": none of these.

    Raises:
      PlaitError: no installed distribution declares a table of this name.

    >>> import plait
    >>> plait.testing.coverage("lower")["core.sin"]
    'own'
    """
    table = _table(table_name)
    applies = _applies(table_name)
    carried = any(c.__dict__.get("rules") is table for c in _carriers(Carrier))
    return {p.name: _cell(table, p, applies, carried) for p in _installed()}


def matrix() -> dict[str, dict[str, str]]:
    """Return {name of the primitive: {name of the table: cell}} of all primitives, and all
    tables that installed distributions declare, and of lowering.  Cells are "broken" for a table
    whose distribution cannot be loaded."""
    columns = {name: _column(name) for name in [lower_rules.name, *names("plait.tables")]}
    return {
        p.name: {name: column.get(p.name, BROKEN) for name, column in columns.items()}
        for p in _installed()
    }


def _column(table_name: str) -> dict[str, str]:
    try:
        return coverage(table_name)
    except PluginError:
        return {}


def matrix_text() -> str:
    """Return the matrix as a Markdown table."""
    rows = matrix()
    head = list(next(iter(rows.values())))
    lines = [f"| primitive | {' | '.join(head)} |", f"|---{'|---' * len(head)}|"]
    lines += [f"| `{name}` | {' | '.join([row[t] for t in head])} |" for name, row in rows.items()]
    return "\n".join(lines) + "\n"


def _installed() -> list[Primitive]:
    """Return every primitive of the core and of installed distributions, by name."""
    for namespace in names("plait.primitives"):
        for d in declared("plait.primitives", namespace):
            with suppress(PluginError):  # the error is reported when the plugin is used
                load(d)
    return [p for name, p in sorted(primitives().items()) if p.namespace != "testing"]


def _table(name: str) -> RuleTable:
    found = tables().get(name)
    if found is None:
        for d in declared("plait.tables", name):
            load(d)
        found = tables().get(name)
    if found is None:
        raise PlaitError(
            f"there is no table {name!r}",
            fix=f"one of {', '.join(sorted({*tables(), *names('plait.tables')}))}",
        )
    return found


def _applies(table_name: str) -> Callable[[Primitive], bool]:
    """Return the predicate of a table's law for primitives it concerns; by default all."""
    for d in declared("plait.laws", table_name):
        told = getattr(load(d), "applies", None)
        if told is not None:
            return told
    return lambda prim: True


def _carriers(kind: type) -> Iterator[Any]:
    for c in kind.__subclasses__():
        yield c
        yield from _carriers(c)


def _bare(prim: Primitive) -> bool:
    """Return whether it has neither operands nor a named axis, so that nothing of it can be
    lifted."""
    parameters = inspect.signature(prim.rule).parameters.values()
    operands = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    return not operands and prim.ambient is None


def _cell(table: RuleTable, prim: Primitive, applies: Callable, carried: bool) -> str:
    if table.own(prim) is not None:
        return OWN
    if table.find(prim) is not None:
        return TRAIT
    if prim.higher is not None and carried:
        return WIRING
    never_asked = prim.ambient is not None if table is lower_rules else carried and _bare(prim)
    if never_asked or not applies(prim):
        return NOT_APPLICABLE
    return EXPAND if expand_rules.find(prim) is not None else MISSING
