"""`jax.memory`: the memory spaces that `jax.device_put` takes for a device.

Invariant: arrays lie in the default memory of their devices, so that a space moves nothing.
"""

from types import SimpleNamespace

import plait
from plait.errors import PlacementError

__all__ = ["MEMORY", "Space"]


class Space(plait.sharding.Sharding):
    """A kind of memory: of the device, or of its host."""

    __slots__ = ("name",)
    Device: "Space"
    Host: "Space"
    Any: "Space"

    def __init__(self, name: str):
        self.name = name

    def here(self) -> None:
        """Return None: an array stays where it is.

        Raises PlacementError for the memory of a host that is not that of its devices.
        """
        if self is Space.Host and plait.default_backend() != "cpu":
            raise PlacementError(
                "arrays lie in the default memory of their devices, and jax.memory.Space.Host "
                "was given",
                fix="leave it out; policies of jax.checkpoint move residuals to the host",
            )

    def __repr__(self) -> str:
        return f"Space.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (Space, self.name)


for _name in ("Device", "Host", "Any"):
    setattr(Space, _name, Space(_name))

MEMORY = SimpleNamespace(Space=Space)
"""`jax.memory`."""
