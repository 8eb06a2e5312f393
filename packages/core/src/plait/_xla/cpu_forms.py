"""Forms of operations that a CPU's compiler makes faster code of.

A compiler may have a fast way for an operation in one form and a slow one in another: products of
matrices are fast on CPUs where the convolutions that are such products are not.  The rules here
choose by types and parameters, so that an operation has one form wherever it occurs, alone or in a
program.  They are for CPUs, and for modules that are compiled here: an artifact is for compilers
that are not known.

A form pays from some size on, or works best with pieces of some size.  Processors differ in these
numbers, so each is a limit with a name and a default.  The setting `cpu_limits` replaces defaults
by numbers that were measured on a machine; `nox -s tune` measures them, and prints the setting.

Invariant: a form computes what the operation does, in the same precision, and holds no arrays.
"""

import functools
from typing import Any

from .._base.config import config, named_numbers
from .._base.errors import PlaitError
from .._core.interpreter import as_list
from .._core.ir import Eqn, Program
from .._core.staging import staged
from .._plugins.rules import RuleTable

cpu_form_rules = RuleTable(
    "cpu_forms",
    owns=("core",),
    signature="(avals, **params)",
    doc="None to keep the operation, or a function of its operands that computes the same by "
    "operations which CPUs do faster.",
)


def wanted(platforms: tuple[str, ...]) -> bool:
    """Return whether a module for these platforms has operations in the forms of this table."""
    return config.cpu_forms and platforms == ("cpu",)


def form(e: Eqn) -> Program | None:
    """Return the program that an equation of a primitive with a rule becomes; None to keep it.

    Operations on values with explicit shardings are kept: pieces of these may not be divisible.
    """
    rule: Any = cpu_form_rules.find(e.prim)
    avals = tuple([a.aval for a in e.inputs])
    if any(a.division is not None for a in avals):
        return None
    key = "form", avals, e.prim.frozen(e.params), config.cpu_limits
    known = e.prim.compiled
    if key not in known:
        function = rule(avals, **e.params)
        if function is None:
            known[key] = None
        else:
            name = e.prim.name.rpartition(".")[2]
            known[key] = staged(lambda *xs: as_list(function(*xs)), avals, name, prune=True)
    return known[key]


LIMITS: "dict[str, CpuLimit]" = {}
"""All limits of the modules that are loaded, by name."""


class CpuLimit:
    """A number that a form depends on.

    Attributes:
      name: `family.name`; all limits of a family belong to one module.
      default: the number if the setting `cpu_limits` does not name the limit.
      doc: its meaning, in a sentence.
      least: the least number that it can be.
    """

    def __init__(self, name: str, default: int, doc: str, least: int):
        self.name, self.default, self.doc, self.least = name, default, doc, least
        LIMITS[name] = self

    @property
    def value(self) -> int:
        """The number that holds under the current settings.

        Raises PlaitError if the setting `cpu_limits` names a limit that this family does not have,
        or gives one a number below its least.
        """
        chosen = config.cpu_limits
        return _chosen(chosen, self.name.partition(".")[0])[self.name] if chosen else self.default


def cpu_limit(name: str, default: int, doc: str, least: int = 0) -> CpuLimit:
    """Return a new limit, whose `value` a rule of `cpu_form_rules` reads when it chooses a form.

    Args:
      name: `family.name`; one module defines all limits of a family.
      default: the number that holds unless the setting `cpu_limits` gives another.
      doc: the meaning of the number, in a sentence.
      least: the least number that it can be, such as 1 for the size of a block.

    >>> from plait.ext.rules import cpu_limit
    >>> cpu_limit("blur.longest", 16, "The longest filter to write out.").value
    16
    """
    return CpuLimit(name, default, doc, least)


@functools.cache
def _chosen(setting: str, family: str) -> dict[str, int]:
    """Return all limits of a family, with the numbers that a setting gives them."""
    found = {name: limit.default for name, limit in LIMITS.items() if _is_of(family, name)}
    given = {name: n for name, n in named_numbers(setting).items() if _is_of(family, name)}
    unknown = sorted(given.keys() - found.keys())
    if unknown:
        raise PlaitError(
            f"the setting 'cpu_limits' names {unknown[0]!r}, which is not a limit",
            fix=f"the limits of {family} are {', '.join(sorted(found))}",
        )
    for name, n in given.items():
        if n < LIMITS[name].least:
            raise PlaitError(
                f"the setting 'cpu_limits' gives {name!r} the number {n}",
                fix=f"give a number of at least {LIMITS[name].least}",
            )
    return found | given


def _is_of(family: str, name: str) -> bool:
    return name.startswith(family + ".")
