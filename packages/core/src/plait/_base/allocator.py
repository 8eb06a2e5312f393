"""The treatment of freed memory by the C library.

By default the GNU C library gives large blocks back to the system when they are freed, and each new
one comes back page by page, zeroed.  Writing a result of 32 MB or more then takes several times as
long as computing it.  (Its manual, "Memory Allocation Tunable Parameters", has the options.)

Invariant: nothing here changes results, and the allocator is changed only by the setting
`keep_memory`.
"""

import ctypes
import sys

from .errors import PlaitError

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The numbers of `mallopt`'s options, in <malloc.h>."""
_LARGE = 1 << 30


def keep_freed_memory() -> None:
    """Make this process keep the memory that is freed, up to 1 GiB a block, for later use.

    The process then holds the most that it ever needed, and some blocks more.  Threads share one
    arena, since each would otherwise keep its own.  Raises PlaitError if the C library has no such
    options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    options = (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE), (_ARENA_MAX, 1)
    if mallopt is None or not all(mallopt(*option) for option in options):
        raise PlaitError(
            "freed memory can be kept by the GNU C library alone, and this process has another",
            fix="leave the setting keep_memory as it is, which is False",
        )
