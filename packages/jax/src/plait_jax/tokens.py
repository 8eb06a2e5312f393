"""Tokens that order effects (`jax.lax.create_token`).

Invariant: a token is an array without elements, so that it goes through every transformation.
"""

from typing import Any

import plait.numpy as pnp
from plait import lax

__all__ = ["after_all", "create_token"]


def create_token(_: object = None) -> Any:
    """Return a new token."""
    return pnp.zeros((0,), bool)


def after_all(*operands: Any) -> Any:
    """Return a token that depends on other tokens."""
    return lax.optimization_barrier((create_token(), *operands))[0]
