"""Settings and modes for a `with` block, under JAX's names.

    with plait.debug_nans(True):
        step(params)

Invariant: each one is a setting of `plait.config` or a block of `plait.debug`, without state of its
own; like those it belongs to the process, not to a thread.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from typing import Any

from .. import events
from .._base.config import GUARDS, config, wide
from .._base.source import where_defined
from .._core.array import is_tracer
from .._core.interpreter import GROUND, Interpreter, Value, current, open_under, use
from .._ops.contraction import normal_precision
from ..debug import checking_leaks, infs, nans

__all__ = [
    "check_tracer_leaks", "checking_leaks", "debug_infs", "debug_key_reuse", "debug_nans",
    "default_matmul_precision", "default_prng_impl", "enable_checks", "enable_x64",
    "ensure_compile_time_eval", "explain_cache_misses", "log_compiles", "numpy_dtype_promotion",
    "numpy_rank_promotion", "transfer_guard", "transfer_guard_device_to_device",
    "transfer_guard_device_to_host", "transfer_guard_host_to_device",
]  # fmt: skip

Block = AbstractContextManager[Any]
"""A context manager, which also decorates functions."""


class _Nothing(ContextDecorator):
    """A block that changes nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


# ---- dtypes, shapes and precision ------------------------------------------------------------


def enable_x64(new_val: bool = True) -> Block:
    """Make 64 bits the default in the block; with False, 64-bit values become 32-bit on entry.

    Raises PlaitError for another value.

    >>> import plait
    >>> with plait.enable_x64():
    ...     plait.numpy.arange(3).dtype, plait.numpy.ones(3).dtype
    (dtype('int64'), dtype('float64'))
    """
    return config(**wide(new_val))


def numpy_dtype_promotion(new_val: str) -> Block:
    """Set the promotion of dtypes: "standard", or "strict", which refuses arrays of different ones.

    Raises PlaitError for another value.

    >>> import plait
    >>> with plait.numpy_dtype_promotion("strict"):
    ...     (plait.numpy.ones(2) + 1).dtype
    dtype('float32')
    """
    return config(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Block:
    """Set the reaction to operands of different numbers of axes: "allow", "warn" or "raise".

    Raises PlaitError for another value.

    >>> import plait
    >>> with plait.numpy_rank_promotion("raise"):
    ...     (plait.numpy.ones((2, 3)) + plait.numpy.ones((1, 3))).shape
    (2, 3)
    """
    return config(numpy_rank_promotion=new_val)


def default_matmul_precision(new_val: object) -> Block:
    """Set the default precision of products on accelerators: "default", "high" or "highest".

    The name of a dtype or an algorithm selects a precision that is at least as exact.

    Raises TypeRule for other names.

    >>> import plait
    >>> with plait.default_matmul_precision("float32"):
    ...     plait.config.default_matmul_precision
    'highest'
    """
    return config(
        default_matmul_precision="default" if new_val is None else normal_precision(new_val)
    )


def default_prng_impl(new_val: str) -> Block:
    """Set the default generator of keys: "threefry2x32" or "rbg".

    >>> import plait
    >>> with plait.default_prng_impl("rbg"):
    ...     plait.random.key(0).dtype
    key<rbg>
    """
    return config(default_prng_impl=new_val)


# ---- transfers -------------------------------------------------------------------------------


def transfer_guard(new_val: str) -> Block:
    """Set the treatment of all transfers between the host and devices, and between devices.

    Explicit transfers are those of `device_put` and `device_get`; all others are implicit, such as
    an array of numpy that a jitted function is given, or `float(x)`.  Python numbers are not
    transfers.  Transfers to the host are guarded on CPUs, too, where they copy nothing.

    Args:
      new_val: "allow", "log" or "disallow" implicit transfers; "log_explicit" and
        "disallow_explicit" include explicit ones.

    Raises PlaitError for other words.

    >>> import numpy as np, plait
    >>> x = plait.device_put(np.ones(2, np.float32))
    >>> with plait.transfer_guard("disallow"):
    ...     y = plait.device_get(x * 2)
    >>> y.tolist()
    [2.0, 2.0]
    """
    return config(**dict.fromkeys(GUARDS, new_val))


def transfer_guard_host_to_device(new_val: str) -> Block:
    """Set the treatment of transfers from the host to devices; see `transfer_guard`.

    Raises PlaitError for another value.
    """
    return config(transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> Block:
    """Set the treatment of transfers from devices to the host; see `transfer_guard`.

    Raises PlaitError for another value.
    """
    return config(transfer_guard_device_to_host=new_val)


def transfer_guard_device_to_device(new_val: str) -> Block:
    """Set the treatment of transfers between devices; see `transfer_guard`.

    Raises PlaitError for another value.
    """
    return config(transfer_guard_device_to_device=new_val)


# ---- time of evaluation ----------------------------------------------------------------------


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """Compute operations on known values at once in the block, while functions around it are
    traced, so that Python can branch on the results.  Operations on traced values are traced.

    >>> import plait
    >>> @plait.jit
    ... def f(x):
    ...     with plait.ensure_compile_time_eval():
    ...         n = int(plait.numpy.arange(4).sum())
    ...     return x * n
    >>> float(f(1.0))
    6.0
    """
    with use(_EvaluateKnown(current())):
        yield


class _EvaluateKnown(Interpreter):
    """An interpreter that executes operations without traced operands, and leaves the rest to its
    parent."""

    does = "ensure_compile_time_eval"

    def __init__(self, parent: Interpreter):
        open_under(self, parent)

    def apply(self, prim: Any, args: Sequence[Value], params: dict[str, Any]) -> Any:
        assert self.parent is not None
        if any(map(is_tracer, args)):
            return self.parent.apply(prim, args, params)
        if prim.higher is not None and prim.higher.pending(params):
            return GROUND.apply(prim, args, params)  # runs Python code, which may use traced values
        with use(GROUND):
            return GROUND.apply(prim, args, params)


# ---- debugging -------------------------------------------------------------------------------


def debug_nans(new_val: bool = True) -> Block:
    """Make an operation that returns a nan an error; see `plait.debug.nans`."""
    return nans() if new_val else _Nothing()


def debug_infs(new_val: bool = True) -> Block:
    """Make an operation that returns an infinity an error; see `plait.debug.infs`."""
    return infs() if new_val else _Nothing()


def check_tracer_leaks(new_val: bool = True) -> Block:
    """Make it an error to keep traced values; see `plait.debug.checking_leaks`."""
    return checking_leaks() if new_val else _Nothing()


def enable_checks(new_val: bool = True) -> Block:
    """Verify every value that a rule returns, and every new Program.

    Raises PlaitError for another value.
    """
    return config(checks=new_val)


def debug_key_reuse(new_val: bool = True) -> Block:
    """Make it an error to use a random key twice.

    Raises PlaitError for another value.
    """
    return config(debug_key_reuse=new_val)


def explain_cache_misses(new_val: bool = True) -> Block:
    """Log to `plait`, for each function that is traced, why it is.

    Raises PlaitError for another value.
    """
    return config(explain_cache_misses=new_val)


def log_compiles(new_val: bool = True) -> Block:
    """Log to `plait`, as warnings, each function traced and each program lowered or compiled in the
    block."""
    return events.listening(_logged) if new_val else _Nothing()


def _logged(name: str, what: Any) -> None:
    said = {
        "trace": lambda: f"tracing {where_defined(what)}",
        "lower": lambda: f"lowering {what.name}",
        "compile": lambda: f"compiling {len(what.code)} bytes of code",
    }
    if name in said:
        logging.getLogger("plait").warning(said[name]())
