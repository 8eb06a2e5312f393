"""The primitives of the namespace `nn`, for modules that need all of them by name.

Invariant: importing this module defines every primitive of `nn`.
"""

from . import attention

__all__ = ["attention"]
