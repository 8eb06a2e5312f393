"""Whether `jax.random.PRNGKey` makes keys of numbers or opaque ones, as JAX's code chooses.

Invariant: `jax.random.key` makes opaque ones whatever is chosen.
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
    """Let `PRNGKey` make opaque keys in a block, or in the function that is decorated.

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
    """The key of a seed: its numbers, or an opaque one in a block of `enable_custom_prng`."""
    return (random.key if _opaque.get() else random.PRNGKey)(seed, impl=impl)
