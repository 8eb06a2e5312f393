"""`jax.config`: Plait's settings, with the two methods by which JAX's read flags of absl.

Invariant: there is one set of settings, Plait's: whatever is read or written here is that.
"""

from typing import Any

import plait

__all__ = ["CONFIG"]


class _Config:
    """Plait's settings; flags of a command line are none of them, and are left to absl."""

    __slots__ = ()

    def config_with_absl(self) -> None:
        """Do nothing: no flags are defined."""

    def parse_flags_with_absl(self) -> None:
        """Do nothing: no flags are read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(plait.config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(plait.config, name, value)

    def __call__(self, **changes: Any) -> Any:
        return plait.config(**changes)

    def __dir__(self) -> list[str]:
        return sorted({*dir(plait.config), "config_with_absl", "parse_flags_with_absl"})

    def __repr__(self) -> str:
        return repr(plait.config)


CONFIG = _Config()
