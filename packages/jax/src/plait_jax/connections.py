"""JAX's record of the connection between processes, for libraries that use its service.

Invariant: it holds nothing itself; all is read from the membership of this process.
"""

from typing import Any

from plait.errors import JaxRuntimeError
from plait.ext.processes import RuntimeFailure, member

__all__ = ["global_state"]


class _Client:
    """The runtime's client, whose failures are of the class that libraries catch."""

    def __init__(self, client: Any):
        self._client = client

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        def call(*args: str, **kwargs: object) -> Any:
            try:
                return found(*args, **kwargs)
            except RuntimeFailure as e:
                raise JaxRuntimeError(str(e)) from None

        return call if callable(found) else found


class _State:
    """The attributes of `jax._src.distributed.global_state` that libraries read."""

    service = preemption_sync_manager = coordinator_address = None

    @property
    def client(self) -> Any:
        """The client of the runtime's service; None if this process is alone."""
        mine = member()
        return None if mine is None or mine.client is None else _Client(mine.client)

    @property
    def process_id(self) -> int:
        mine = member()
        return 0 if mine is None else mine.index

    @property
    def num_processes(self) -> int:
        mine = member()
        return 1 if mine is None else mine.count


global_state = _State()
