"""Numbers on which the choice of a form for CPUs depends, and that differ between processors.

A form pays from some size on, or works best with pieces of some size.  Each of these numbers has a
name and a default.  The setting `cpu_limits` replaces defaults by numbers that were measured on a
machine; `nox -s tune` measures them, and prints the setting.

Invariant: a limit chooses between forms of one operation; each of them computes the operation.
"""

import functools

from .._base.config import config, named_numbers
from .._base.errors import PlaitError

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

        Raises PlaitError if the setting `cpu_limits` names a limit of this family that is none, or
        gives one a number that it cannot be.
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
