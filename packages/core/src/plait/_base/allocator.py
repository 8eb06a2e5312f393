"""What the C library does with memory that is freed.

By default the GNU C library gives large blocks back to the system when they are freed, and each new
one comes back page by page, zeroed: results of 32 MB and more take several times as long to be
written as to be computed.  (Its manual, "Memory Allocation Tunable Parameters", has the options.)

Invariant: nothing here changes what is computed, and nothing is changed unless it is asked for.
"""

import ctypes
import sys

from .errors import PlaitError

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The numbers of `mallopt`'s options, in <malloc.h>."""
_LARGE = 1 << 30


def keep_freed_memory() -> None:
    """Have this process keep the memory that is freed, up to 1 GiB a block, for what comes next.

    It then holds the most that it ever needed, and some blocks more.  Threads share one arena, or
    each would keep its own.  Raises PlaitError if the C library has no
    such options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    options = (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE), (_ARENA_MAX, 1)
    if mallopt is None or not all(mallopt(*option) for option in options):
        raise PlaitError(
            "freed memory can be kept by the GNU C library alone, and this process has another",
            fix="leave the setting keep_memory as it is, which is False",
        )
