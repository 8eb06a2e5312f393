"""Scalar functions, as regions contain them, applied to whole arrays.

Invariant: such a function consists of elementwise operations only, so that applying it to arrays
equals applying it to each element.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.ir import Program, Var
from plait.ext.ops.elementwise import bitcast_
from plait.ext.ops.shape import broadcast_in_dim
from plait.ext.rules import Elementwise, Structural
from plait.ext.trace import stage
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..errors import NotReadable
from .module import Block
from .walking import Walk


def of_cells(walk: Walk, block: Block) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a region of scalars as a function of arrays of one shape.

    Raises NotReadable if it is not elementwise, or uses values from outside.
    """
    kinds = [Aval((), t.dtype) for t in block.types]
    program, captured = stage(
        lambda *cells: [walk.value(v) for v in walk.block(block, cells)], kinds, "cells", prune=True
    )
    if captured or any(t.shape for t in block.types):
        raise NotReadable("a function of elements takes others than elements")
    for e in program.eqns:
        if not {Elementwise, Structural} & set(e.prim.traits) and e.prim is not bitcast_:
            raise NotReadable(f"a function of elements applies {e.prim}, which is not elementwise")
    return lambda xs: _over_arrays(program, xs)


def _over_arrays(program: Program, xs: Sequence[Any]) -> list:
    shape = max((x.aval.shape for x in xs), key=len)
    spread = [x if x.aval.shape == shape else broadcast_in_dim.bind(x, shape=shape, dims=())
              for x in xs]  # fmt: skip
    env: dict[Any, Any] = dict(zip(program.inputs, spread, strict=True))

    def of(a: Any) -> Any:
        return env[a] if a.__class__ is Var else Literal(a.value, a.aval.with_shape(shape))

    for e in program.eqns:
        out = e.prim.bind(*map(of, e.inputs), **e.params)
        env.update(zip(e.outputs, out if e.prim.many else [out], strict=True))
    return [of(a) for a in program.outputs]
