"""`jax.config`: Plait's settings under JAX's names, with the two methods for flags of absl.

Some settings of JAX are `with` blocks in Plait (`debug_nans`).  Writing such a setting opens the
block, which stays open in the thread that wrote it.

Invariant: there is one set of settings and one set of blocks, Plait's; this module reads and writes
only these.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import plait
from plait.ext.errors import ArgumentError
from plait.ext.trace import GROUND, current

__all__ = ["CONFIG"]


_BLOCKS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "jax_debug_nans": (plait.debug_nans, False),
    "jax_debug_infs": (plait.debug_infs, False),
    "jax_check_tracer_leaks": (plait.check_tracer_leaks, False),
    "jax_log_compiles": (plait.log_compiles, False),
    "jax_default_device": (plait.default_device, None),
}
"""Blocks that settings open, and the value for which none is open."""


_FIXED = {"jax_threefry_partitionable": True, "jax_use_shardy_partitioner": True}
"""Settings with one possible value here, which is JAX's default."""


class _Open:
    """The blocks that settings have opened, nested in order."""

    def __init__(self) -> None:
        self.values = {name: off for name, (_, off) in _BLOCKS.items()}
        self._stack, self._current = ExitStack(), GROUND

    def write(self, name: str, value: Any) -> None:
        """Open the block of a setting, or close it; the others stay open."""
        if current() is not self._current:  # blocks can only be closed in the opposite order
            raise ArgumentError(
                f"{name} is set inside of another block, or of a function that is transformed",
                fix=f"set it before, or write a block: with jax.{name.removeprefix('jax_')}(...)",
            )
        before = self.values
        try:
            self._enter({**before, name: value})
        except BaseException:  # the block refuses the value
            self._enter(before)
            raise

    def _enter(self, wanted: dict[str, Any]) -> None:
        """Open exactly the blocks for these values."""
        self._stack.close()
        try:
            for key, wish in wanted.items():
                block, off = _BLOCKS[key]
                if wish is not off:
                    self._stack.enter_context(block(wish))
            self.values = dict(wanted)
        finally:
            self._current = current()


_open = _Open()


def _expect(name: str, value: Any) -> None:
    if value is not _FIXED[name]:
        raise ArgumentError(
            f"{name} is {_FIXED[name]} in Plait, and {value!r} is asked for",
            fix="leave it as it is: random bits and divisions are those of JAX's default",
        )


class _Config:
    """Plait's settings; command-line flags are left to absl."""

    __slots__ = ()

    def config_with_absl(self) -> None:
        """Do nothing: no flags are defined."""

    def parse_flags_with_absl(self) -> None:
        """Do nothing: no flags are read."""

    @property
    def x64_enabled(self) -> bool:
        """True if Python numbers have 64 bits."""
        return plait.config.jax_enable_x64

    def read(self, name: str) -> Any:
        """Return the setting with this JAX name."""
        return getattr(self, name)

    def update(self, name: str, value: Any) -> None:
        """Write the setting with this JAX name.

        Raises PlaitError for an unknown name or an invalid value.
        """
        if name in _BLOCKS:
            _open.write(name, value)
        elif name in _FIXED:
            _expect(name, value)
        else:
            plait.config.update(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _BLOCKS:
            return _open.values[name]
        return _FIXED[name] if name in _FIXED else getattr(plait.config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _BLOCKS or name in _FIXED:
            self.update(name, value)
        else:
            setattr(plait.config, name, value)

    def __call__(self, **changes: Any) -> Any:
        return plait.config(**changes)

    def __dir__(self) -> list[str]:
        own = {"config_with_absl", "parse_flags_with_absl", "read", "update", "x64_enabled"}
        return sorted({*dir(plait.config), *_BLOCKS, *_FIXED, *own})

    def __repr__(self) -> str:
        return repr(plait.config)


CONFIG = _Config()
