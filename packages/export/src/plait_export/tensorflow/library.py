"""TensorFlow, imported when it is first needed.

What runs StableHLO there, XlaCallModule, has no public name; `runner` is the only place that knows
where it is.

Invariant: nothing here is imported from TensorFlow before a function of this package is called.
"""

import os
from functools import cache
from typing import Any

from plait.ext.errors import PlaitError, hide


@cache
def tensorflow() -> Any:
    """TensorFlow.  Raises PlaitError if it is not installed."""
    try:
        import tensorflow as found  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as e:
        if e.name != "tensorflow":
            raise
        raise PlaitError(
            "plait.export.tensorflow calls TensorFlow, which is not installed",
            fix='python -m pip install "plait-export[tensorflow]"',
        ) from None
    hide(os.path.dirname(str(found.__file__)))  # it lies between a user's line and ours
    return found


class _Library:
    """TensorFlow's names, imported when one is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tensorflow(), name)


tf: Any = _Library()


@cache
def runner() -> Any:
    """The module of TensorFlow's that has `call_module`."""
    tensorflow()
    try:
        from tensorflow.compiler.tf2xla.python import xla  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise PlaitError(
            f"this release of TensorFlow does not run StableHLO where others do: {e}",
            fix='python -m pip install --upgrade "plait-export[tensorflow]"',
        ) from None
    return xla
