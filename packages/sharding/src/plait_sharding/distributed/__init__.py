"""Several processes as one machine: `plait.distributed`.

    plait.distributed.initialize("10.0.0.1:12345", num_processes=4, process_id=2)

Every process runs the same program; `plait.devices()` are the devices of all of them, and arrays
may be spread over them.

Invariant: every public name is listed here, or in `exchange`, whose other names are those of
`plait.experimental.multihost_utils`.
"""

from plait.ext.surface import advise as _advise
from plait.ext.surface import explained_calls as _explained_calls

from .actors import on_ray
from .exchange import key_value_delete, key_value_get, key_value_set, wait_at_barrier
from .failures import DistributedError, PeerLost, ProgramsDiffer
from .membership import initialize, is_initialized, shutdown

__all__ = [
    "DistributedError", "PeerLost", "ProgramsDiffer", "initialize", "is_initialized",
    "key_value_delete", "key_value_get", "key_value_set", "on_ray", "shutdown", "wait_at_barrier",
]  # fmt: skip

_explained_calls(globals())

_advise("plait.distributed", globals())
