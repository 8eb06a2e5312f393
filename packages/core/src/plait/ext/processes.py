"""Several processes that compute together: the interface for plugins that connect them.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import RuntimeFailure, distributed_client, distributed_service, gloo
from .._core.buffers import started
from .._core.processes import Membership, finish_flights, join, member

__all__ = [
    "Membership", "RuntimeFailure", "distributed_client", "distributed_service", "finish_flights",
    "gloo", "join", "member", "started",
]  # fmt: skip
