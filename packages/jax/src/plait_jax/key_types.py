"""The setting that makes `jax.random.PRNGKey` return opaque keys instead of numbers.

Invariant: `jax.random.key` makes opaque keys under either setting.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from plait import random

__all__ = ["PRNGKey", "enable_custom_prng"]

_opaque: ContextVar[bool] = ContextVar("opaque_keys", default=False)


@contextmanager
def enable_custom_prng(new_val: bool = True) -> Iterator[None]:
    """Make `PRNGKey` return opaque keys in a block, or in a decorated function.

    >>> import plait
    >>> with enable_custom_prng():
    ...     plait.dtypes.issubdtype(PRNGKey(0).dtype, plait.dtypes.prng_key)
    True
    """
    token = _opaque.set(bool(new_val))
    try:
        yield
    finally:
        _opaque.reset(token)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """Return the key of a seed: its numbers, or an opaque key under `enable_custom_prng`."""
    return (random.key if _opaque.get() else random.PRNGKey)(seed, impl=impl)
