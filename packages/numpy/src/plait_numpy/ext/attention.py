"""Attention.

Invariant: nothing is defined here.
"""

from ..primitives.nn.attention import attention_, attention_cotangent, attention_tangent

__all__ = ["attention_", "attention_cotangent", "attention_tangent"]
