"""The setting that makes `jax.random.PRNGKey` return opaque keys instead of numbers.

Invariant: `jax.random.key` makes opaque keys under either setting.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from plait import random

__all__ = ["PRNGKey", "enable_custom_prng", "make_opaque_keys", "opaque_keys"]

_opaque: ContextVar[bool | None] = ContextVar("opaque_keys", default=None)
_outside = False
"""The choice outside of blocks, for all threads."""


def make_opaque_keys(on: bool) -> None:
    """Make `PRNGKey` return opaque keys outside of blocks, or numbers again."""
    global _outside
    _outside = bool(on)


def opaque_keys() -> bool:
    """Return whether `PRNGKey` returns opaque keys."""
    inside = _opaque.get()
    return _outside if inside is None else inside


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


def PRNGKey(seed: int, *, impl: Any = None) -> Any:
    """Return the key of a seed: its numbers, or an opaque key under `enable_custom_prng`."""
    return (random.key if opaque_keys() else random.PRNGKey)(seed, impl=impl)
