"""Foreign calls: compiled functions of other libraries, by XLA's foreign function interface (FFI).

Invariant: the attributes of a foreign function are text in the parameters, so a program with such
calls prints, parses and compiles as any other.  The runtime finds the function by its name alone.
"""

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._base.errors import ArgumentError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import as_value
from .._core.interpreter import Value
from .._core.ir import Effect
from .._core.primitive import Ints, Primitive
from .._types.avals import Aval
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import array_of, attr, boolean, indices, string
from ..tree import flatten
from .callbacks import IO

__all__ = ["foreign"]

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


def _foreign(
    *xs: Aval,
    target: str,
    outs: tuple[Aval, ...],
    config: str,
    acts: bool,
    vmap_method: str | None,
    in_layouts: tuple[Ints, ...],
    out_layouts: tuple[Ints, ...],
    aliases: tuple[Ints, ...],
) -> list[Aval]:
    """Call the foreign function `target`, which returns results of the types `outs`."""
    for k, order in [*zip(range(len(xs)), in_layouts), *zip(range(len(outs)), out_layouts)]:
        if sorted(order) != list(range(len(order))):
            raise ShapeError(
                f"the layout {order} of number {k} is not an order of axes",
                fix="give the axes from the one with the greatest stride to that with the least",
            )
    for i, k in aliases:
        if not xs[i].same_type(outs[k].strong()) and xs[i].strong() is not outs[k].strong():
            raise ArgumentError(
                f"operand {i}, {xs[i]!r}, cannot become result {k}, {outs[k]!r}",
                fix="alias operands and results of one type",
            )
    return list(outs)


def _effect(params: Mapping[str, Any]) -> Effect | None:
    return IO if params["acts"] else None


foreign = Primitive("core.foreign", _foreign, many=True, effect=_effect)


@lower_rules.rule(foreign)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    types: list[Aval],
    target: str,
    outs: list[Aval],
    config: str,
    acts: bool,
    vmap_method: object,
    in_layouts: tuple[tuple[Any, ...], ...],
    out_layouts: tuple[tuple[Any, ...], ...],
    aliases: tuple[Any, ...],
):
    several = len(outs) > 1
    out = e.op(
        "stablehlo.custom_call",
        xs,
        *types,
        call_target_name=string(target),
        api_version=attr("4 : i32"),
        has_side_effect=boolean(acts),
        backend_config=attr(config),
        operand_layouts=array_of([indices(*reversed(order)) for order in in_layouts]),
        result_layouts=array_of([indices(*reversed(order)) for order in out_layouts]),
        output_operand_aliases=array_of(
            [
                attr(
                    "#stablehlo.output_operand_alias<"
                    f"output_tuple_indices = {[k] if several else []}, "
                    f"operand_index = {i}, operand_tuple_indices = []>"
                )
                for i, k in aliases
            ]
        ),
    )
    return out if several else [out] if outs else []


# ---- attributes of foreign functions -----------------------------------------------------------


def said(name: str, value: object) -> str:
    """Return a Python or numpy value as the text of an attribute.

    Raises TypeRule for a value without such a text.
    """
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k} = {said(k, v)}' for k, v in value.items())}}}"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    x = np.asarray(value)
    kind = x.dtype.kind
    if isinstance(value, int | float):
        x = x.astype("i8" if kind == "i" else "f8")
    if kind not in "biuf" or x.ndim > 1:
        raise ArgumentError(
            f"a foreign function cannot be told {name} = {value!r}",
            fix="give strings, booleans, numbers, one-dimensional arrays of these, or dicts",
        )
    element = _element(x.dtype)
    if x.ndim == 0:
        return f"{_number(x[()])} : {element}"
    inner = ", ".join(_number(v) for v in x)
    return f"dense<[{inner}]> : tensor<{len(x)}x{element}>"


def _element(dtype: np.dtype) -> str:
    if dtype == bool:
        return "i1"
    return f"{'f' if dtype.kind == 'f' else 'ui' if dtype.kind == 'u' else 'i'}{dtype.itemsize * 8}"


def _number(x: Any) -> str:
    if x.dtype.kind != "f":
        return str(bool(x)).lower() if x.dtype.kind == "b" else str(int(x))
    if math.isfinite(x):
        return f"{float(x):.17e}"
    code = {2: "<H", 4: "<I", 8: "<Q"}[x.dtype.itemsize]
    return hex(struct.unpack(code, x.tobytes())[0])


# ---- functions for users -------------------------------------------------------------------


def _layouts(given: Any, avals: Sequence[Aval]) -> tuple[Ints, ...]:
    orders = [None] * len(avals) if given is None else list(given)
    if len(orders) != len(avals):
        raise ArgumentError(f"{len(orders)} layouts were given for {len(avals)} arrays")
    return tuple([tuple(range(a.ndim)) if o is None else tuple(o) for o, a in zip(orders, avals)])


def ffi_call(
    target_name: str,
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: object = None,
    input_output_aliases: Mapping[int, int] | None = None,
) -> Callable[..., Any]:
    """Return a function that calls a compiled one, registered with the runtime by its name.

    Args:
      target_name: the name; see `register_ffi_target`.
      result_shape_dtypes: a tree of objects with `.shape` and `.dtype`: the types of the results.
      has_side_effect: True if calls have other effects and must not be dropped.
      vmap_method: how a mapped call is made.  None refuses it.  "sequential" calls the function
        for each element in turn.  "expand_dims" calls it once, with the mapped axis in front of
        every argument; it has size 1 in arguments that are not mapped.  "broadcast_all" repeats
        these along the axis instead.
      input_layouts, output_layouts: for each array its axes, from the greatest stride to the least;
        None is the order of the axes.
      input_output_aliases: {number of an argument: number of the result in its memory}.

    Returns:
      `call(*arrays, **attributes)`.  Attributes may be strings, booleans, Python numbers (64 bits),
      numpy scalars (of their own width), one-dimensional arrays of numbers, and dicts of these.

    Raises TypeRule for an invalid layout, alias or attribute.  The runtime may report a wrong
    number or type of arguments; nothing else checks it.

    >>> import numpy as np, plait
    >>> kind = plait.ShapeDtypeStruct((2, 2), np.float32)
    >>> call = plait.ffi.ffi_call("lapack_spotrf_ffi", (kind, plait.ShapeDtypeStruct((), np.int32)))
    >>> call(np.float32([[4, 0], [0, 9]]), uplo=np.uint8(ord("L")))[0]
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"there is no vmap_method {vmap_method!r}", fix=f"choose of {', '.join(VMAP_METHODS)}"
        )
    leaves, tree = flatten(result_shape_dtypes)
    outs = tuple([Aval(tuple(s.shape), np.dtype(s.dtype)) for s in leaves])

    def call(*args: Value, **attributes: object) -> Any:
        xs = [as_value(x) for x in args]
        results = foreign(
            *xs,
            target=target_name,
            outs=outs,
            config=said("attributes", attributes),
            acts=has_side_effect,
            vmap_method=vmap_method,
            in_layouts=_layouts(input_layouts, [x.aval for x in xs]),
            out_layouts=_layouts(output_layouts, outs),
            aliases=tuple(sorted((input_output_aliases or {}).items())),
        )
        return tree.unflatten(results)

    return call
