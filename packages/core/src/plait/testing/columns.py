"""Which primitive has an answer in which table: the matrix, generated from what is installed.

Invariant: a cell says where the answer comes from, as the table itself would find it; nothing is
kept by hand.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from .._base.errors import PlaitError, PluginError
from .._core.carrier import Carrier, expand_rules
from .._core.primitive import Primitive, primitives
from .._ops import families as _families  # noqa: F401  (it defines the primitives of core)
from .._plugins.metadata import declared, load, names
from .._plugins.rules import RuleTable, tables
from .._xla.lower import lower_rules

__all__ = ["coverage", "matrix", "matrix_text"]

OWN, TRAIT, EXPAND, WIRING = "own", "trait", "expand", "wiring"
MISSING, NOT_APPLICABLE, BROKEN = "missing", "not applicable", "broken"


def coverage(table_name: str) -> dict[str, str]:
    """Where a table finds its answer for each installed primitive.

    Returns:
      {name of the primitive: cell}, in order of names.  A cell is
      "own": a rule for this very primitive;
      "trait": the rule of one of its traits;
      "expand": none, but it can be said with other primitives;
      "wiring": none is needed: it holds programs, and core carries the transformation through;
      "not applicable": the table is never asked: its law says so, or there are no operands, or
        the operation is lowered by whoever binds the axis that it speaks of;
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
    """{name of the primitive: {name of the table: cell}} of all primitives and all tables that
    installed distributions declare, and of lowering; the cells of a table whose distribution can
    not be loaded are "broken"."""
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
    """The matrix as a table of Markdown."""
    rows = matrix()
    head = list(next(iter(rows.values())))
    lines = [f"| primitive | {' | '.join(head)} |", f"|---{'|---' * len(head)}|"]
    lines += [f"| `{name}` | {' | '.join([row[t] for t in head])} |" for name, row in rows.items()]
    return "\n".join(lines) + "\n"


def _installed() -> list[Primitive]:
    """Every primitive of core and of installed distributions, by name."""
    for namespace in names("plait.primitives"):
        for d in declared("plait.primitives", namespace):
            with suppress(PluginError):  # it is reported when it is used
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
    """What the law of the table says of whether it concerns a primitive; all, by default."""
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
    """Whether it has no operands, and speaks of no axis either: nothing of it can be lifted."""
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
