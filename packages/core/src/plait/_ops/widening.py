"""The warning about arrays of numpy that make an operation compute with 64 bits.

numpy makes arrays of 64 bits by default, so one of them turns a computation with
32 bits into one with 64 without a word.

Invariant: the warning changes no result, and a line is warned of once.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.config import config
from .._base.errors import PromotionWarning
from .._base.source import here, user_frames, warn
from .._core.interpreter import Value
from .._types.opaque import Opaque

__all__ = ["judge_widening"]

_seen: set[tuple[str, int]] = set()


def judge_widening(args: Sequence[Any], dtype: np.dtype | Opaque) -> None:
    """Warn if an array of numpy is why floating operands are promoted to `dtype`, of 64 bits.

    The setting `promotion_warning` turns it off, and so does JAX's rule for numpy's scalars.
    """
    if dtype.itemsize < 8 or not config.promotion_warning or config.numpy_scalars == "strong":
        return
    wide = [a for a in args if isinstance(a, np.ndarray) and a.dtype in (np.float64, np.complex128)]
    narrow = [a for a in args if isinstance(a, Value) and _is_narrow(a)]
    if not wide or not narrow:
        return
    frames = user_frames(here(), 1)
    place = (frames[0].file, frames[0].line) if frames else ("<unknown>", 0)
    if place in _seen:
        return
    _seen.add(place)
    of, by = narrow[0].aval, wide[0]
    warn(
        f"{of.dtype.name} becomes {dtype.name}: {of!r} meets an array of numpy of "
        f"{by.dtype.name}{list(by.shape)}\n"
        f"  write array.astype({of.dtype.name!r}) for it, or make both wide on purpose; "
        "plait.config.promotion_warning = False turns this off",
        PromotionWarning,
    )


def _is_narrow(x: Value) -> bool:
    a = x.aval
    return a.inexact and not a.weak_type and a.dtype not in (np.float64, np.complex128)
