"""Linear algebra kernels: calls of LAPACK on the CPU, of cuSOLVER on CUDA, of hipSOLVER on ROCm,
and of functions of the compiler for TPUs.

A kernel works on stacks of matrices: all axes but the last two (the last one, of vectors) count
the matrices of a stack.

Invariant: matrices are passed in column-major order, as these libraries require, and everything
else in row-major order.  A kernel called with another layout returns garbage without an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from plait.ext import Aval, PlaitError
from plait.ext.lower import (
    LETTERS,
    SOLVERS,
    Emitter,
    IrValue,
    array_of,
    attr,
    boolean,
    indices,
    string,
)
from plait.ext.sizes import is_symbolic
from plait.ext.types import BOOL, COMPLEX, INT32


def platform(e: Emitter, what: str, *others: str) -> str:
    """Return the platform of a module: "cpu", "cuda", or one of `others`.

    Raises PlaitError if a module is for another platform, or for several.
    """
    names = e.unit.platforms
    if len(names) == 1 and names[0] in ("cpu", "cuda", *others):
        return names[0]
    raise _no_library(what, names)


def on_cpu(e: Emitter, what: str) -> None:
    """Require a module for the CPU alone; raises PlaitError."""
    if e.unit.platforms != ("cpu",):
        raise _no_library(what, e.unit.platforms)


def solver(here: str, routine: str) -> str:
    """Return the name of a kernel of the library of "cuda" or "rocm"."""
    return f"{SOLVERS[here]}_{routine}_ffi"


def _no_library(what: str, names: Sequence[str]) -> PlaitError:
    return PlaitError(
        f"{what} is computed by a library of the platform, and none is known for "
        f"{' and '.join(names)}",
        fix='lower it for one platform: for "cpu", where all of them are',
    )


def lapack(routine: str, aval: Aval) -> str:
    """Return the name of LAPACK's kernel for matrices of a type."""
    return f"lapack_{LETTERS[aval.dtype.name]}{routine}_ffi"


def kernel(
    e: Emitter,
    target: str,
    xs: Sequence[Any],
    ins: Sequence[Aval],
    outs: Sequence[Aval],
    stacked: int,
    over: Mapping[int, int] | None = None,
    **config: Any,
) -> list:
    """Call a kernel, and return its results, one for each type of `outs`.

    Args:
      target: its name.
      stacked: the number of leading axes that count matrices.
      over: {operand: result}; the result is written in place of the operand.
      config: attributes of the kernel: a letter, a flag, or an i32.
    """
    symbolic = any(is_symbolic(o.shape) for o in outs)
    sizes = [e.shape(o.shape) for o in outs] if symbolic else []
    layouts = [_layout(a.ndim, stacked) for a in ins] + [indices(0)] * len(sizes)
    attributes = {
        "call_target_name": string(target),
        "api_version": attr("4 : i32"),
        "has_side_effect": boolean(False),
        "backend_config": attr(f"{{{', '.join(_said(k, v) for k, v in config.items())}}}"),
        "operand_layouts": array_of(layouts),
        "result_layouts": array_of([_layout(o.ndim, stacked) for o in outs]),
        "output_operand_aliases": array_of(
            [_alias(i, k, len(outs)) for i, k in (over or {}).items()]
        ),
        "mhlo.frontend_attributes": attr(f'{{num_batch_dims = "{stacked}"}}'),
    }
    if stacked and not any(is_symbolic(a.shape) for a in (*ins, *outs)):
        attributes["sdy.sharding_rule"] = attr(_division(ins, outs, stacked))
    if symbolic:
        attributes["indices_of_shape_operands"] = _positions(len(xs), len(sizes))
    out = e.op("stablehlo.custom_call", [*xs, *sizes], *outs, **attributes)
    return [out] if len(outs) == 1 else out


def lies_in_columns(x: Any) -> bool:
    """Return whether the compiler lays out a stack of matrices by columns.

    It does so for what a kernel returns, and for selections from that.
    """
    while getattr(x.owner, "name", "") == "stablehlo.select":
        x = x.owner.operands[1]
    return getattr(x.owner, "name", "") == "stablehlo.custom_call"


def tpu_kernel(
    e: Emitter, target: str, xs: Sequence[Any], outs: Sequence[Aval], version: int, config: str = ""
) -> list:
    """Call a function of the compiler for TPUs, which chooses layouts itself."""
    symbolic = any(is_symbolic(o.shape) for o in outs)
    sizes = [e.shape(o.shape) for o in outs] if symbolic else []
    attributes = {"call_target_name": string(target), "api_version": attr(f"{version} : i32")}
    if config:
        attributes["backend_config"] = string(config)
    if symbolic:
        attributes["indices_of_shape_operands"] = _positions(len(xs), len(sizes))
    out = e.op("stablehlo.custom_call", [*xs, *sizes], *outs, **attributes)
    return [out] if len(outs) == 1 else out


def _positions(start: int, count: int) -> Any:
    """Return the numbers of the operands that hold the shapes of results."""
    return attr(f"dense<{list(range(start, start + count))}> : tensor<{count}xi64>")


def _layout(ndim: int, stacked: int) -> Any:
    if ndim < stacked + 2:
        return indices(*reversed(range(ndim)))
    return indices(ndim - 2, ndim - 1, *reversed(range(ndim - 2)))


def _said(name: str, value: Any) -> str:
    """Return an attribute as text; a letter is passed as its code."""
    if value.__class__ is bool:
        return f"{name} = {'true' if value else 'false'}"
    if value.__class__ is int:
        return f"{name} = {value} : i32"
    return f"{name} = {ord(value)} : ui8" if len(value) == 1 else f'{name} = "{value}"'


_FACTORS = "ijklmnopqrstuvwxyz"


def _division(ins: Sequence[Aval], outs: Sequence[Aval], stacked: int) -> str:
    """Return Shardy's rule that divides a kernel along the axes that count matrices only."""
    sizes: list[int] = list(ins[0].shape[:stacked])

    def factors(aval: Aval) -> str:
        start = len(sizes)
        sizes.extend(aval.shape[stacked:])
        return f"[{', '.join(_factor(i) for i in (*range(stacked), *range(start, len(sizes))))}]"

    left, right = (", ".join([factors(a) for a in avals]) for avals in (ins, outs))
    each = ", ".join([f"{_factor(i)}={n}" for i, n in enumerate(sizes)])
    return f"#sdy.op_sharding_rule<({left})->({right}) {{{each}}}, custom>"


def _factor(i: int) -> str:
    """Return the name of factor `i` in Shardy's syntax."""
    last = len(_FACTORS) - 1
    return _FACTORS[i] if i <= last else f"z_{i - last}"


def _alias(operand: int, result: int, count: int) -> Any:
    where = [result] if count > 1 else []
    return attr(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {where}, "
        f"operand_index = {operand}, operand_tuple_indices = []>"
    )


def told(
    e: Emitter, info: IrValue, how: Aval, direction: str, outs: Sequence, avals: Sequence
) -> list:
    """Return results where `info`, of type `how`, is 0 (`EQ`) or not negative (`GE`); else nan."""
    right = e.compare(info, e.constant(0, how), direction, Aval(how.shape, BOOL))
    found = []
    for x, aval in zip(outs, avals, strict=True):
        nan = complex("nan+nanj") if aval.category == COMPLEX else float("nan")
        flags = e.broadcast(right, range(how.ndim), Aval(aval.shape, BOOL))
        found.append(e.op("stablehlo.select", [flags, x, e.constant(nan, aval)], aval))
    return found


def infos(aval: Aval) -> Aval:
    """Return the type of the status that a kernel returns for a stack of matrices."""
    return Aval(aval.shape[:-2], INT32)
