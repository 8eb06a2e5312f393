"""The runtime's profiler, and its estimates and texts of programs.

Invariant: devices are started before anything records them.
"""

from typing import Any

from .._base import jaxlib_api
from .._core.buffers import client

__all__ = ["costs_of", "heap_profile", "live_texts", "server", "session"]


def session(python: bool, options: Any = None) -> Any:
    """Start a session of the runtime's profiler; `python`: whether it records calls of Python."""
    client()
    return jaxlib_api.profiler_session(python, options)


def server(port: int) -> Any:
    """Return a server from which other programs record profiles of this process."""
    client()
    return jaxlib_api.profiler_server(port)


def heap_profile() -> bytes:
    """Return the arrays and executables in device memory, in the format of pprof."""
    return client().heap_profile()


def live_texts() -> list[str]:
    """Return the optimised HLO of the executables in memory, as texts."""
    return jaxlib_api.live_hlo(client())


def costs_of(code: bytes) -> dict[str, float]:
    """Return the runtime's estimate of a StableHLO module's costs, before optimisation."""
    return jaxlib_api.cost_of(client(), code)
