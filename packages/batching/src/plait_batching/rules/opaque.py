"""Batching of opaque elements: the mapped axis is never an axis of an element.

Invariant: the axes of an element stay the last ones.
"""

from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.trace import Value
from plait.typing import Array

from ..interpreter import batching_rules


@batching_rules.rule(wrap_)
def _(batch, xs: list[Array], dims, *, dtype):
    return wrap_.bind(batch.front(xs[0], dims[0]), dtype=dtype), 0


@batching_rules.rule(unwrap_)
def _(batch: object, xs: list[Value], dims):
    return unwrap_.bind(*xs), dims[0]
