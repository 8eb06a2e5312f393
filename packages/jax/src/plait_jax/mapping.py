"""The mapping rules of JAX's primitives, for Plait's table.

Invariant: only the table of plait_batching loads this module.
"""

from types import SimpleNamespace
from typing import Any

from plait.ext import as_value
from plait_batching.ext import Batch, batching_rules

from .primitives import (
    Primitive,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    free,
    primitive_batchers,
    tell,
)


def _give(prim: Primitive) -> None:
    """Register a rule that looks up the registries when it runs."""

    def mapped(batch: Batch, xs: Any, dims: Any, /, **params: object) -> tuple[Any, Any]:
        rest = tuple(xs), tuple(dims)
        if prim in fancy_primitive_batchers:
            axis = SimpleNamespace(size=batch.size, name=batch.axis_name, spmd_name=None)
            got = fancy_primitive_batchers[prim](axis, *rest, **free(params))
        elif prim in axis_primitive_batchers:
            front = batch.size, batch.axis_name, None
            got = axis_primitive_batchers[prim](*front, *rest, **free(params))
        elif prim in primitive_batchers:
            got = primitive_batchers[prim](*rest, **free(params))
        else:
            raise batching_rules.missing(prim.operation)
        out, dim = got
        if not prim.multiple_results:
            return as_value(out), dim
        many = list(dim) if isinstance(dim, tuple | list) else [dim] * len(out)
        return list(map(as_value, out)), many

    batching_rules.rule(prim.operation)(mapped)


tell(_give)
