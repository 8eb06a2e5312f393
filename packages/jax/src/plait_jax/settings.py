"""`jax.config`: Plait's settings, read as JAX's are, with the two methods for flags of absl.

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

    @property
    def x64_enabled(self) -> bool:
        """Whether Python numbers have 64 bits."""
        return plait.config.jax_enable_x64

    def read(self, name: str) -> Any:
        """The setting that JAX calls so."""
        return getattr(plait.config, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(plait.config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(plait.config, name, value)

    def __call__(self, **changes: Any) -> Any:
        return plait.config(**changes)

    def __dir__(self) -> list[str]:
        own = {"config_with_absl", "parse_flags_with_absl", "read", "x64_enabled"}
        return sorted({*dir(plait.config), *own})

    def __repr__(self) -> str:
        return repr(plait.config)


CONFIG = _Config()
