"""Queries of JAX code to the runtime: existing devices, and the number of CPU devices.

Invariant: no query but `backends` and `get_backend` creates a device.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import plait
from plait.ext.devices import platform

__all__ = ["BACKENDS", "backends", "devices_by_flags", "get_backend"]

_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


def devices_by_flags() -> int | None:
    """Return the number of CPU devices that XLA_FLAGS request; None without a request.

    >>> import os
    >>> os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    >>> devices_by_flags()
    4
    >>> del os.environ["XLA_FLAGS"]
    """
    found = _COUNT.findall(os.environ.get("XLA_FLAGS", ""))
    return int(found[-1]) if found and int(found[-1]) > 0 else None


class _Backends(Mapping[str, Any]):
    """Platform -> its devices, once they exist.

    Libraries look here before they change the number of devices.
    """

    def __getitem__(self, name: str) -> Any:
        if name in list(self):
            return plait.devices(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter([platform()] if plait.config.is_frozen("cpu_devices") else [])

    def __len__(self) -> int:
        return len(list(iter(self)))


BACKENDS = _Backends()


def backends() -> dict[str, Any]:
    """Return a dict from platforms to their devices; it creates the devices.

    >>> "cpu" in backends()
    True
    """
    here = plait.devices()
    found = {platform(): here}
    return found if "cpu" in found else {**found, "cpu": plait.devices("cpu")}


def get_backend(name: str | None = None) -> Any:
    """Return the runtime's client of a platform; it creates the devices.

    >>> get_backend("cpu").platform
    'cpu'
    """
    return plait.devices(name)[0].client
