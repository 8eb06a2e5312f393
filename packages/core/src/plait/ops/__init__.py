"""The primitives of core, by family; and, for users, reductions over segments.

Invariant: a file holds the definitions, lowerings and expansions of one family, and nothing of
any transformation.
"""

import importlib as _importlib
from typing import Any

_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def __dir__() -> list[str]:
    return [*globals(), *_SEGMENTS]


def __getattr__(name: str) -> Any:
    if name in _SEGMENTS:
        return getattr(_importlib.import_module(".segments", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
