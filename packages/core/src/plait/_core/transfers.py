"""Guards of transfers: copies between the host and devices that the user did not write.

`plait.device_put` and `plait.device_get` are explicit transfers.  All others are implicit: an array
of numpy as an argument, `float(x)`, an array that a call moves to other devices.

Invariant: without guards no transfer is looked at.  Transfers that tracing or compiling needs are
never refused.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .._base.config import config
from .._base.errors import TransferError
from .._base.source import here, user_line
from .._types.avals import Aval
from .interpreter import GROUND, current

__all__ = ["crossing", "explicit"]

_log = logging.getLogger("plait")
_local = threading.local()
_REMEDIES = {
    "host_to_device": "make it before the block, or write plait.device_put(x), which is explicit",
    "device_to_host": "read it after the block, or write plait.device_get(x), which is explicit",
    "device_to_device": (
        "place it before the block, or write plait.device_put(x, sharding), which is explicit"
    ),
}
_WORDS = {
    "host_to_device": "would be copied from the host to a device",
    "device_to_host": "would be read on the host",
    "device_to_device": "would be copied to other devices",
}


@contextmanager
def explicit() -> Iterator[None]:
    """Count the transfers of this thread as explicit in the block."""
    before = getattr(_local, "explicit", False)
    _local.explicit = True
    try:
        yield
    finally:
        _local.explicit = before


def crossing(kind: str, what: Aval) -> None:
    """Refuse or log one transfer, as the guard of its kind says.

    Args:
      kind: "host_to_device", "device_to_host" or "device_to_device".
      what: the type of the array.

    Raises TransferError if the guard refuses it.
    """
    level = getattr(config, f"transfer_guard_{kind}")
    is_explicit = getattr(_local, "explicit", False)
    covered = not is_explicit or level.endswith("_explicit")
    if level == "allow" or not covered or current() is not GROUND:
        return
    if level.startswith("log"):
        place = user_line(here())
        _log.warning("%r %s\n  at %s", what, _WORDS[kind].replace("would be", "is"), place)
        return
    raise TransferError(
        f"{what!r} {_WORDS[kind]}, and the guard of such transfers is {level!r}",
        fix="move it out of the block" if is_explicit else _REMEDIES[kind],
    )
