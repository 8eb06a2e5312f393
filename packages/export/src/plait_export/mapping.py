"""Batching of calls of exported functions: the module is read back and the program is mapped.

A module that cannot be read is called for one element after the other.  So is a function with a
custom mapping rule, because a module does not hold that rule.

Invariant: only the table of plait_batching loads this module.
"""

from typing import Any

import plait
from plait.ext.ops.control_flow import row
from plait_batching.ext import batching_rules

from .artifact import Exported
from .calling import call_exported
from .errors import NotReadable
from .pullbacks import by_reading, with_pullback, without_rules


@batching_rules.rule(call_exported)
def _(batch, xs, dims, *, artifact):
    every, front = (xs, dims), len(artifact.held)
    xs, dims = xs[front:], dims[front:]
    rows = [row(x.aval, d) for x, d in zip(xs, dims, strict=True)]
    if not _is_read(artifact, rows):
        return batch.each(call_exported, *every, {"artifact": artifact})
    mapped = plait.vmap(_function(artifact), in_axes=tuple(dims), axis_size=batch.size)
    outs = mapped(*xs)
    return outs, [0] * len(outs)


def _is_read(artifact: Any, rows: list) -> bool:
    """Return whether the module can be read for these elements without losing a mapping rule."""
    if not isinstance(artifact, Exported):
        return False
    if any(rule.startswith("custom_vmap") for rule in artifact.custom_rules or ()):
        return False
    try:
        artifact.read_for(rows)
    except NotReadable:
        return False
    return True


def _function(artifact: Exported) -> Any:
    """Return the function of flat values, with its derivatives if plait-autodiff is installed."""
    apply = by_reading(artifact)
    if getattr(plait, "custom_vjp", None) is None:
        return apply
    if artifact.has_vjp():
        return with_pullback(artifact, apply)
    if artifact.rules_may_go or artifact.custom_rules == ():
        return apply
    return without_rules(artifact, apply)
