"""Safety checks of `export` that may be disabled, under the names of jax.export.

Invariant: disabling any other check raises an error; no check is skipped silently.
"""

from collections.abc import Iterable
from typing import Any

from plait.ext.errors import ArgumentError


class DisabledSafetyCheck:
    """A check that `export` skips: `export(f, disabled_checks=[...])`.

    >>> import plait
    >>> plait.export.DisabledSafetyCheck.custom_call("my_target")
    custom_call:my_target
    """

    __slots__ = ("target",)
    target: str

    def __init__(self, target: str):
        if not isinstance(target, str):
            raise ArgumentError(
                f"{target!r} is not the name of a function outside StableHLO",
                fix='write DisabledSafetyCheck.custom_call("name")',
            )
        self.target = target

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """Disable the check that every reader supports this function outside StableHLO.

        This equals `custom_calls=[target_name]`.
        """
        return cls(target_name)

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """Refuse to disable the check that a function runs on a platform it was exported for.

        Raises ArgumentError.
        """
        raise ArgumentError(
            "an artifact is called on the platforms that it was exported for: what is lowered for "
            "one may call what others do not have",
            fix="export it for all: plait.export.export(f, platforms=[...])",
        )

    def is_custom_call(self) -> str:
        """Return the name of the function that may be called."""
        return self.target

    def __repr__(self) -> str:
        return f"custom_call:{self.target}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self.target == other.target

    def __hash__(self) -> int:
        return hash(self.target)


def calls_allowed(checks: Iterable[Any]) -> list[str]:
    """Return the names of the functions whose checks are disabled.

    Raises ArgumentError for anything but a DisabledSafetyCheck.
    """
    try:
        found: list[Any] = list(checks)
    except TypeError:
        found = [checks]
    for each in found:
        if not isinstance(each, DisabledSafetyCheck):
            raise ArgumentError(
                f"{each!r} is not a check that can be left out",
                fix='write DisabledSafetyCheck.custom_call("name")',
            )
    return [each.target for each in found]
