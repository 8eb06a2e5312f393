"""Calls of Python by compiled programs: callbacks of users, and functions of numpy.

The compiler's code for some operations on CPUs is many times slower than that of numpy, which is
loaded anyway.  A program then calls the function of numpy, as a `HostFunction`.  A callback of a
user may do anything, so programs with callbacks are compiled for each function.  Host functions are
the same in every process and compute with their arguments alone, so programs that call them are
kept in memory and on disk.  The runtime returns from a program with either when it is complete.

Invariant: the text of a program names its host functions.  They import nothing and take no lock,
since a thread that waits for the program may hold it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import PlaitError
from .._base.jaxlib_api import IrValue
from .._base.pjrt_plugins import GPUS
from .._core.ir import Effect
from .._types.avals import Aval
from . import mlir
from .lower import Emitter


class HostFunction:
    """A function of numpy arrays that programs for CPUs call.

    Attributes:
      name: what the text of programs says.
      function: from arrays to a tuple of arrays, of the types that each call promises.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., tuple]):
        self.name, self.function = name, function

    def __call__(self, *xs: Any) -> tuple:
        return self.function(*[np.asarray(x) for x in xs])

    def emit(self, e: Emitter, xs: Sequence[IrValue], ins: Sequence[Aval], outs: list[Aval]) -> Any:
        """Emit a call; return its results."""
        how = {"mhlo.frontend_attributes": mlir.attr(f'{{plait_host_function = "{self.name}"}}')}
        return list(python_call(e, self, xs, ins, outs, (), how).results)


def are_users(callbacks: Sequence[Callable[..., Any]]) -> bool:
    """Return whether one of the functions that a module calls is a user's."""
    return any(not isinstance(f, HostFunction) for f in callbacks)


def wrapped(callbacks: Sequence[Callable[..., Any]], wrap: Callable[..., Any]) -> list:
    """Return the functions that a module calls, with `wrap` applied to those of users."""
    return [f if isinstance(f, HostFunction) else wrap(f) for f in callbacks]


def python_call(
    e: Emitter,
    function: Callable[..., Any],
    xs: Sequence[IrValue],
    ins: Sequence[Aval],
    outs: Sequence[Aval],
    order: Sequence[Effect],
    how: dict[str, Any],
) -> Any:
    """Return the operation that calls `function` with numpy arrays.

    Args:
      xs, ins: the operands and their types.
      outs: the types of the results.
      order: the effects whose tokens the call takes, and returns before its results.
      how: further attributes.
    """
    index = len(e.unit.callbacks)
    e.unit.callbacks.append(function)
    tokens = [mlir.bindings().token] * len(order)
    attributes = {
        "call_target_name": mlir.string(_target(e.unit.platforms)),
        "api_version": mlir.attr("4 : i32"),
        "backend_config": mlir.attr(f"{{index = {index} : ui64}}"),
        "operand_layouts": _row_major(len(order), ins),
        "result_layouts": _row_major(len(order), outs),
        **how,
    }
    types = [*tokens, *map(mlir.type_of, outs)]
    operands = [*e.tokens_of(order), *xs]
    return e.create("stablehlo.custom_call", types, operands, attributes, None, 0, e.where, e.ip)


def _target(platforms: tuple[str, ...]) -> str:
    """Return the runtime's function that calls Python.

    Raises PlaitError for platforms without one.
    """
    if platforms == ("cpu",):
        return "xla_ffi_python_cpu_callback"
    if len(platforms) == 1 and platforms[0] in GPUS:
        return "xla_ffi_python_gpu_callback"
    raise PlaitError(
        f"a callback to Python cannot be lowered for {' and '.join(platforms)}",
        fix="lower for one platform, a CPU or a GPU",
    )


def _row_major(tokens: int, avals: Sequence[Aval]) -> Any:
    """Return the layouts of `tokens` tokens followed by arrays in numpy's row-major order."""
    dims = [*[0] * tokens, *(a.ndim for a in avals)]
    return mlir.array_of([mlir.indices(*reversed(range(n))) for n in dims])
