"""Functions with SciPy's names, by its packages.

Invariant: importing this imports none of them; each is imported on first access.
"""

import importlib as _importlib

from plait.ext.surface import advise as _advise

_MODULES = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "special",
    "stats",
)

__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


_advise("plait.scipy", globals())
