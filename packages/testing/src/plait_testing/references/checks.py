"""Conditions that must hold, without results.

Invariant: every condition here holds, so nothing is raised.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.trace import Value

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


class _Silent:
    """A place of a check that holds, whose error is never raised."""

    enforced = False

    def error(self, ok: object, payload: object) -> Exception:
        return AssertionError(f"a condition that holds was reported, with {payload}")


_SILENT = _Silent()


def _check(ok: np.ndarray, *payload: np.ndarray, said: "_Silent", optional: bool) -> list:
    return [np.asarray(ok)]


def _passed(prim: Primitive, ok: Value, /, *payload: Any, **params: object) -> list:
    """Return the condition after its check: there is nothing else to compare."""
    prim.bind(ok, *payload, **params)
    return [ok]


def _holding(prim: Primitive) -> Iterator[Sample]:
    how = {"said": _SILENT, "optional": True}
    yield Sample((np.bool_(True),), how)
    yield Sample((np.ones(2, bool), ordinary("float32"), np.arange(2)), how)


REFERENCES = {"core.check": Reference(_check, _holding, through=_passed)}
"""The Reference of each primitive of the family."""
