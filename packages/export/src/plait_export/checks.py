"""Safety checks that may be left out, as jax.export names them.

Invariant: what can not be left out here is refused in words; nothing is left out silently.
"""

from collections.abc import Iterable
from typing import Any

from plait.ext.errors import ArgumentError


class DisabledSafetyCheck:
    """A check of `export` that is left out: `export(f, disabled_checks=[...])`.

    >>> import plait
    >>> plait.export.DisabledSafetyCheck.custom_call("my_target")
    custom_call:my_target
    """

    __slots__ = ("target",)

    def __init__(self, target: str):
        if not isinstance(target, str):
            raise ArgumentError(
                f"{target!r} is no name of a function outside StableHLO",
                fix='write DisabledSafetyCheck.custom_call("name")',
            )
        self.target = target

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """That a function outside StableHLO is known to every reader: the same as
        `custom_calls=[target_name]`."""
        return cls(target_name)

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """That a function is called where it was exported for: this can not be left out.

        Raises ArgumentError.
        """
        raise ArgumentError(
            "an artifact is called on the platforms that it was exported for: what is lowered for "
            "one may call what others do not have",
            fix="export it for all: plait.export.export(f, platforms=[...])",
        )

    def is_custom_call(self) -> str:
        """The name of the function that may be called."""
        return self.target

    def __repr__(self) -> str:
        return f"custom_call:{self.target}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self.target == other.target

    def __hash__(self) -> int:
        return hash(self.target)


def calls_allowed(checks: Iterable[Any]) -> list[str]:
    """The functions that may be called since their checks are left out.

    Raises ArgumentError for what is no check.
    """
    try:
        found: list[Any] = list(checks)
    except TypeError:
        found = [checks]
    for each in found:
        if not isinstance(each, DisabledSafetyCheck):
            raise ArgumentError(
                f"{each!r} is no check that can be left out",
                fix='write DisabledSafetyCheck.custom_call("name")',
            )
    return [each.target for each in found]
