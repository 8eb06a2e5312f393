"""Memory mappings of compiled code, and the tables of executables that are emptied in time.

Linux limits the mappings of a process (`vm.max_map_count`, mostly 65,530).  A small executable
takes three, a large one a thousand.  A compiler that gets no more of them ends the process.  So
when half of them are taken, all tables that hold executables are emptied, those of jitted functions
too.  The next call compiles again, or loads from disk.

Invariant: emptying a table changes no result.
"""

import gc
import threading
from collections.abc import Callable

from .config import config
from .living import Living

_LARGEST, _SELDOM = 1500, 16
_tables: Living[Callable[[], None]] = Living()
_lock = threading.Lock()


def emptied_by(forget: Callable[[], None]) -> Callable[[], None]:
    """Let `forget()` be called when executables must go; return it.  It is held weakly."""
    _tables.add(forget)
    return forget


def forget_all() -> None:
    """Empty all tables."""
    for forget in _tables.each():
        forget()


class Watch:
    """A count of compilations until the mappings are counted again."""

    def __init__(self) -> None:
        self.most = _limit() // 2
        self.left = 0

    def compiled(self) -> None:
        """Empty all tables if compiled code takes too many mappings.  Call it after compiling."""
        if not self.most:
            return
        with _lock:
            self.left -= 1
            if self.left > 0:
                return
            self.left = 1
        taken = count()
        if taken > self.most:
            forget_all()
            config.notify()
            gc.collect()
            taken = count()
        # What remains is in use.  If it is much, count less often, since that takes milliseconds.
        self.left = max(_SELDOM, (self.most - taken) // _LARGEST)


def count() -> int:
    """Return the number of mappings of this process, 0 where the system does not say."""
    try:
        with open("/proc/self/maps", "rb") as f:
            return f.read().count(b"\n")
    except OSError:
        return 0


def _limit() -> int:
    try:
        with open("/proc/sys/vm/max_map_count") as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


watch = Watch()
