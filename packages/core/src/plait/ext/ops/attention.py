"""Attention.

Invariant: nothing is defined here.
"""

from ..._ops.nn.attention import attention_, attention_cotangent, attention_tangent

__all__ = [
    "attention_",
    "attention_cotangent",
    "attention_tangent",
]
