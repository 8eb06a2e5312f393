"""Every exception that Plait raises for users.

Invariant: nothing is defined here.
"""

from ._base import errors as _errors
from ._base.errors import *
from ._base.lazy import advise as _advise

__all__: list[str] = []
__all__ += _errors.__all__

_advise("plait.errors", globals())
