"""Settings and ways of working for a `with` block, under the names that JAX has for them.

    with plait.debug_nans(True):
        step(params)

Invariant: each is a setting of `plait.config` or a block of `plait.debug`, and has no state of its
own: like those it belongs to the process, not to a thread.
"""

import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .. import events
from .._base.config import config, wide
from .._base.source import where_defined
from .._core.array import is_tracer
from .._core.interpreter import GROUND, Interpreter, current, open_under, use
from .._ops.contraction import normal_precision
from ..debug import checking_leaks, infs, nans

__all__ = [
    "check_tracer_leaks",
    "checking_leaks",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_matmul_precision",
    "default_prng_impl",
    "enable_checks",
    "enable_x64",
    "ensure_compile_time_eval",
    "explain_cache_misses",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
]

Block = AbstractContextManager[Any]


# ---- dtypes, shapes and precision ------------------------------------------------------------


def enable_x64(new_val: bool = True) -> Block:
    """Numbers of 64 bits by default; with False 64 bits become 32 wherever they enter.

    >>> import plait
    >>> with plait.enable_x64():
    ...     plait.numpy.arange(3).dtype, plait.numpy.ones(3).dtype
    (dtype('int64'), dtype('float64'))
    """
    return config(**wide(new_val))


def numpy_dtype_promotion(new_val: str) -> Block:
    """ "standard"; or "strict": arrays of different dtypes are refused where they meet.

    >>> import plait
    >>> with plait.numpy_dtype_promotion("strict"):
    ...     (plait.numpy.ones(2) + 1).dtype
    dtype('float32')
    """
    return config(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> Block:
    """ "allow", "warn" or "raise": what is done where arrays of different numbers of axes meet.

    >>> import plait
    >>> with plait.numpy_rank_promotion("raise"):
    ...     (plait.numpy.ones((2, 3)) + plait.numpy.ones((1, 3))).shape
    (2, 3)
    """
    return config(numpy_rank_promotion=new_val)


def default_matmul_precision(new_val: Any) -> Block:
    """How exact products are, on accelerators, where nothing is said: "default", "high",
    "highest", or the name of a dtype or an algorithm, which is at least as exact.

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
    """The generator of keys where none is named: "threefry2x32" or "rbg".

    >>> import plait
    >>> with plait.default_prng_impl("rbg"):
    ...     plait.random.key(0).dtype
    key<rbg>
    """
    return config(default_prng_impl=new_val)


# ---- what is computed when -------------------------------------------------------------------


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """What is computed of known values in the block is computed now, while functions around it
    are traced, and can be branched on; what is computed of traced values is traced.

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
    """Executes what has no traced operand, and leaves the rest to its parent."""

    does = "ensure_compile_time_eval"

    def __init__(self, parent: Interpreter):
        open_under(self, parent)

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        assert self.parent is not None
        if any(map(is_tracer, args)):
            return self.parent.apply(prim, args, params)
        if prim.higher is not None and prim.higher.pending(params):
            return GROUND.apply(prim, args, params)  # runs Python, which may use traced values
        with use(GROUND):
            return GROUND.apply(prim, args, params)


# ---- debugging -------------------------------------------------------------------------------


def debug_nans(new_val: bool = True) -> Block:
    """An operation that makes a nan is an error; see `plait.debug.nans`."""
    return nans() if new_val else nullcontext()


def debug_infs(new_val: bool = True) -> Block:
    """An operation that makes an infinity is an error; see `plait.debug.infs`."""
    return infs() if new_val else nullcontext()


def check_tracer_leaks(new_val: bool = True) -> Block:
    """Traced values that are kept are an error; see `plait.debug.checking_leaks`."""
    return checking_leaks() if new_val else nullcontext()


def enable_checks(new_val: bool = True) -> Block:
    """Every value that a rule returns is verified, and every new Program."""
    return config(checks=new_val)


def debug_key_reuse(new_val: bool = True) -> Block:
    """A random key that is used twice is an error."""
    return config(debug_key_reuse=new_val)


def explain_cache_misses(new_val: bool = True) -> Block:
    """Why a function is traced is written to the log `plait`, each time one is."""
    return config(explain_cache_misses=new_val)


def log_compiles(new_val: bool = True) -> Block:
    """What is traced, lowered and compiled in the block is written to the log `plait`, as
    warnings."""
    return events.listening(_logged) if new_val else nullcontext()


def _logged(name: str, what: Any) -> None:
    said = {
        "trace": lambda: f"tracing {where_defined(what)}",
        "lower": lambda: f"lowering {what.name}",
        "compile": lambda: f"compiling {len(what.code)} bytes of code",
    }
    if name in said:
        logging.getLogger("plait").warning(said[name]())
