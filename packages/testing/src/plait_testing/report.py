"""Results of a run of checks, and comparison of arrays.

Invariant: every check of a run is run; failures are reported together, at the end.  An expected
failure has a reason, and one that does not occur is a failure too.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from plait.ext import PlaitError
from plait.ext.types import COMPLEX, FLOATING, category
from plait.tree import flatten

__all__ = ["Checks", "Inapplicable", "Nonconforming", "Report", "agree", "tolerance"]


class Inapplicable(Exception):
    """A check or a law does not apply; its text gives the reason."""


class Nonconforming(AssertionError):
    """Failed checks, one per paragraph."""


class Report(NamedTuple):
    """The results of checks.

    Attributes:
      checks: numbers of comparisons, by name of the check.
      expected: checks that failed as expected, and why.
      skipped: checks that do not apply, and why.
    """

    checks: dict[str, int]
    expected: dict[str, str]
    skipped: dict[str, str]

    @property
    def total(self) -> int:
        """The number of comparisons made."""
        return sum(self.checks.values())


class Checks:
    """A runner of named checks, which reports at the end.

    Args:
      what: the subject of the checks, for messages.
      expected: {name: reason} of checks that should fail.
    """

    def __init__(self, what: str, expected: Mapping[str, str] | None = None):
        self.what, self.expected = what, dict(expected or {})
        self.checks: dict[str, int] = {}
        self.skipped: dict[str, str] = {}
        self.failures: dict[str, list[str]] = {}

    def run(self, name: str, check: Callable[[], int | None]) -> None:
        """Run one check; it returns the number of its comparisons, by default one."""
        try:
            made = check()
        except Inapplicable as e:
            self.skipped.setdefault(name, str(e))
        except Exception as e:  # whatever the exception is, the other checks must run too
            told = str(e) if isinstance(e, AssertionError | PlaitError) else repr(e)
            self.failures.setdefault(name, []).append(told.strip() or repr(e))
        else:
            self.checks[name] = self.checks.get(name, 0) + (1 if made is None else made)

    def report(self, at_least: int = 0) -> Report:
        """Return the result; raise Nonconforming if a check failed unexpectedly, an expected
        failure did not occur, or fewer comparisons were made than `at_least`."""
        told = [
            f"{name}: {text}"
            for name, texts in self.failures.items()
            if name not in self.expected
            for text in texts
        ]
        told += [
            f"{name}: was to fail ({reason}), and does not"
            for name, reason in self.expected.items()
            if name not in self.failures
        ]
        made = sum(self.checks.values())
        if made < at_least:
            told.append(f"only {made} comparisons were made, and there have to be {at_least}")
        if told:
            raise Nonconforming(f"{self.what} does not conform\n" + "\n".join(told))
        return Report(self.checks, self.expected, self.skipped)


# ---- comparing -----------------------------------------------------------------------------

_RELATIVE = {8: 1e-10, 4: 2e-5, 2: 2e-2, 1: 0.3}


def tolerance(dtype: np.dtype) -> float:
    """Return the relative distance that two computations of a value may have; 0 for exact
    dtypes."""
    if category(dtype) not in (FLOATING, COMPLEX):
        return 0.0
    if dtype.name == "bfloat16":
        return 5e-2
    return _RELATIVE[dtype.itemsize // (2 if category(dtype) == COMPLEX else 1)]


def agree(got: object, want: object, tol: float | None = None, what: str = "") -> int:
    """Check that two trees of arrays have equal shapes and close elements; return their number.

    Elements may be `tol` apart, relatively and absolutely; by default the tolerance of the narrower
    dtype.  Raises AssertionError.
    """
    xs, ys = [[np.asarray(v) for v in flatten(t)[0]] for t in (got, want)]
    assert len(xs) == len(ys), f"{what}: {len(xs)} results, not {len(ys)}"
    for x, y in zip(xs, ys):
        assert x.shape == y.shape, f"{what}: shape {x.shape}, not {y.shape}"
        near = max(tolerance(x.dtype), tolerance(y.dtype)) if tol is None else tol
        np.testing.assert_allclose(_wide(x), _wide(y), near, near, err_msg=what)
    return len(xs)


def _wide(x: np.ndarray) -> np.ndarray:
    """Convert to a dtype that numpy can subtract."""
    kind = category(x.dtype)
    if kind == COMPLEX:
        return x.astype(np.complex128)
    return x.astype(np.float64) if kind == FLOATING or "int4" in x.dtype.name else x
