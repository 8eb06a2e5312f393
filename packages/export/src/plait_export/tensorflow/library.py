"""TensorFlow, imported when it is first needed.

XlaCallModule, the operation that runs StableHLO, has no public name in TensorFlow; only `runner`
imports it from its private place.

Invariant: TensorFlow is not imported before a function of this package is called.
"""

import os
from functools import cache
from typing import Any

from plait.ext.errors import PlaitError, hide, install_command
from plait.ext.plugins import library


@cache
def tensorflow() -> Any:
    """Import TensorFlow and return it.  Raises MissingPlugin if it is not installed."""
    does = "plait.export.tensorflow calls TensorFlow"
    found = library("tensorflow", does, "plait-export", "tensorflow")
    # Its frames lie between a user's line and ours, and would be taken for the user's.
    hide(os.path.dirname(str(found.__file__)))
    return found


class _Library:
    """A proxy of the TensorFlow module that imports it at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tensorflow(), name)


tf: Any = _Library()


@cache
def runner() -> Any:
    """Return TensorFlow's module that contains `call_module`.

    Raises PlaitError if this release does not have it in the expected place.
    """
    tensorflow()
    try:
        from tensorflow.compiler.tf2xla.python import xla  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise PlaitError(
            f"this release of TensorFlow does not run StableHLO where others do: {e}",
            fix=lambda: install_command("plait-export", extra="tensorflow"),
        ) from None
    return xla
