"""`jax.config`: Plait's settings under JAX's names, with the two methods for flags of absl.

Some settings of JAX are `with` blocks in Plait (`debug_nans`).  Writing such a setting opens the
block, which stays open in the thread that wrote it.  Settings without a meaning in Plait keep what
is written; the first change of each one warns, and `report()` lists it.

Invariant: a setting that means something here is one of Plait's settings and blocks; all values
that JAX accepts are accepted.
"""

import os
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from inspect import unwrap
from pathlib import Path
from typing import Any, NamedTuple

import plait
from plait.errors import PlaitError
from plait.ext.errors import ArgumentError, hidden, where_defined
from plait.ext.trace import GROUND, current

from .key_types import make_opaque_keys, opaque_keys
from .requests import remember, user_level

__all__ = [
    "CONFIG",
    "SETTINGS",
    "Retraced",
    "UnknownSetting",
    "adopt_environment",
    "block_of",
    "set_cache_dir",
]


class UnknownSetting(PlaitError, AttributeError):
    """The error for a name that is not one of JAX's settings."""


class Retraced(PlaitError, RuntimeError):
    """The error for a function that is traced where `jax_no_tracing` is set."""


class Setting(NamedTuple):
    """A setting of JAX.

    Attributes:
      kind: the name of a Python type, or the accepted words, joined by `|`.
      default: JAX's default.
    """

    kind: str
    default: Any


def _read() -> dict[str, Setting]:
    """Return JAX's settings."""
    text = (Path(__file__).parent / "settings.txt").read_text(encoding="utf-8")
    rows = [line.split(" ", 2) for line in text.splitlines()]
    return {name: Setting(kind, literal_eval(default)) for name, kind, default in rows}


SETTINGS = _read()


# ---- settings that are blocks ----------------------------------------------------------------


@contextmanager
def _no_tracing(wish: bool) -> Iterator[None]:
    """Refuse to trace functions of the user in the block; those that were traced before run."""
    with plait.events.listening(_refuse_traces) if wish else nullcontext():
        yield


def _refuse_traces(event: str, f: Any) -> None:
    code = getattr(unwrap(f) if callable(f) else f, "__code__", None)
    if event == "trace" and not (code is not None and hidden(code.co_filename)):
        raise Retraced(
            f"{where_defined(f)} is traced for new types of arguments, and jax_no_tracing is set",
            fix="call it with arguments of these types before the block",
        )


_BLOCKS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "jax_debug_nans": (plait.debug_nans, False),
    "jax_debug_infs": (plait.debug_infs, False),
    "jax_check_tracer_leaks": (plait.check_tracer_leaks, False),
    "jax_no_tracing": (_no_tracing, False),
    "jax_log_compiles": (plait.log_compiles, False),
    "jax_default_device": (plait.default_device, None),
}
"""Blocks that settings open, and the value for which none is open."""


class _Open:
    """The blocks that settings have opened, nested in order."""

    def __init__(self) -> None:
        self.values = {name: off for name, (_, off) in _BLOCKS.items()}
        self._stack, self._current = ExitStack(), GROUND

    def write(self, name: str, value: object) -> None:
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


# ---- settings that Plait spells differently --------------------------------------------------


def _precision(value: str | None) -> None:
    with plait.default_matmul_precision(value):  # it takes JAX's names of precisions
        name = plait.config.default_matmul_precision
    plait.config.update("default_matmul_precision", name)


def _platforms(value: Any) -> None:
    # JAX computes on the first platform of a list, and Plait on one platform.
    first = value.partition(",")[0] if isinstance(value, str) else value
    plait.config.update("platform", first or None)


_folder: list[str] = []
"""The folder of executables, while jax_enable_compilation_cache is False."""


def _disk_cache(value: bool) -> None:
    wanted = _typed("jax_enable_compilation_cache", value)
    if not wanted and plait.config.cache_dir is not None:
        _folder[:] = [plait.config.cache_dir]
        plait.config.update("cache_dir", None)
    elif wanted and plait.config.cache_dir is None and _folder:
        plait.config.update("cache_dir", _folder.pop())


_UNLIMITED = 1 << 62


def _cache_size(value: int | None) -> None:
    size = _typed("jax_compilation_cache_max_size", value)
    plait.config.update("cache_size", _UNLIMITED if size in (None, -1) else size)


def _cache_seconds(value: float | None) -> None:
    seconds = _typed("jax_persistent_cache_min_compile_time_secs", value)
    plait.config.update("cache_seconds", 0.0 if seconds is None else seconds)


def _devices(value: int) -> None:
    if value != SETTINGS["jax_num_cpu_devices"].default:  # -1 leaves the choice to XLA_FLAGS
        plait.config.update("jax_num_cpu_devices", value)


_SPELLED: dict[str, Callable[[Any], None]] = {
    "jax_default_matmul_precision": _precision,
    "jax_compilation_cache_max_size": _cache_size,
    "jax_enable_compilation_cache": _disk_cache,
    "jax_enable_custom_prng": make_opaque_keys,
    "jax_num_cpu_devices": _devices,
    "jax_persistent_cache_min_compile_time_secs": _cache_seconds,
    "jax_platforms": _platforms,
    "jax_platform_name": _platforms,
}
"""Functions that write settings whose values differ from Plait's."""

_READERS: dict[str, Callable[[], Any]] = {
    "jax_compilation_cache_max_size": lambda: (
        -1 if plait.config.cache_size == _UNLIMITED else plait.config.cache_size
    ),
    "jax_enable_compilation_cache": lambda: plait.config.cache_dir is not None,
    "jax_enable_custom_prng": opaque_keys,
    "jax_persistent_cache_min_compile_time_secs": lambda: plait.config.cache_seconds,
}
"""Functions that read such settings, where JAX's name is not one of `plait.config`."""


_OWN_NAMES = {
    "jax_platforms": "platform",
    "jax_platform_name": "platform",
    "jax_traceback_filtering": "traceback",
    "jax_compilation_cache_dir": "cache_dir",
    "jax_compilation_cache_max_size": "cache_size",
    "jax_persistent_cache_min_compile_time_secs": "cache_seconds",
    "jax_enable_compilation_cache": "cache_dir",
    "jax_disable_jit": "jit",
    "jax_enable_checks": "checks",
    "jax_num_cpu_devices": "cpu_devices",
}
"""JAX's names of settings -> Plait's, where these differ by more than `jax_`."""


# ---- settings without a meaning in Plait -----------------------------------------------------


_TYPES: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "str": str}

_NEUTRAL = {"jax_persistent_cache_min_entry_size_bytes": -1}
"""Values besides the default that mean what Plait does anyway."""

_kept: dict[str, Any] = {}
_warned: set[str] = set()


def _typed(name: str, value: object) -> Any:
    """Return a value that JAX accepts for a setting; raise UnknownSetting's kin otherwise."""
    kind = SETTINGS[name].kind
    if value is None:
        return value
    if kind in _TYPES:
        if isinstance(value, _TYPES[kind]):
            return value
        wanted = f"a value of type {kind}, or None"
    else:
        words = kind.split("|")
        word = getattr(value, "value", value)
        if word in words:
            return word
        wanted = f"one of {', '.join(words)}, or None"
    raise ArgumentError(
        f"{name} must be {wanted}, got {value!r}", fix=f"its default is {SETTINGS[name].default!r}"
    )


def _keep(name: str, value: object) -> None:
    """Keep the value of a setting that means nothing here; warn at the first change."""
    value = _typed(name, value)
    _kept[name] = value
    kind, default = SETTINGS[name]
    same = (
        None,
        default,
        kind.partition("|")[0] if default is None else default,
        _NEUTRAL.get(name),
    )
    if value in same or name in _warned:  # the first word of a guard, "allow", means the same
        return
    _warned.add(name)
    remember(f"jax.config.{name}", False)
    warnings.warn(
        f"{name}={value!r} has no effect: Plait has no such setting, and computes as with "
        f"{default!r}; plait_jax.report() lists the settings without effect",
        UserWarning,
        stacklevel=user_level(),
    )


def _plaits(name: str) -> bool:
    """Return whether one of Plait's settings has this name."""
    try:
        getattr(plait.config, name)
    except AttributeError:
        return False
    return True


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

    @property
    def values(self) -> dict[str, Any]:
        """All settings of JAX, with their values."""
        return {name: getattr(self, name) for name in SETTINGS}

    def read(self, name: str) -> Any:
        """Return the setting with this JAX name."""
        return getattr(self, name)

    def update(self, name: str, value: object) -> None:
        """Write the setting with this JAX name.

        Raises UnknownSetting for an unknown name, PlaitError for an invalid value.
        """
        if name in _BLOCKS:
            _open.write(name, value)
        elif name in _SPELLED:
            _SPELLED[name](value)
        elif _plaits(name):
            plait.config.update(name, value)
        elif name in SETTINGS:
            _keep(name, value)
        else:
            raise UnknownSetting(
                f"JAX has no setting {name!r}", fix="dir(jax.config) lists the settings"
            )

    def __getattr__(self, name: str) -> Any:
        if name in _BLOCKS:
            return _open.values[name]
        if name in _READERS:
            return _READERS[name]()
        if name in SETTINGS and not _plaits(name):
            return _kept.get(name, SETTINGS[name].default)
        return getattr(plait.config, name)

    def __setattr__(self, name: str, value: object) -> None:
        self.update(name, value)

    def __call__(self, **settings: object) -> Any:
        return plait.config(**settings)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(plait.config), *SETTINGS})

    def __repr__(self) -> str:
        return repr(plait.config)


CONFIG = _Config()


_WORDS = {
    **dict.fromkeys(("1", "t", "true", "on", "y", "yes"), True),
    **dict.fromkeys(("0", "f", "false", "off", "n", "no"), False),
}


def adopt_environment() -> None:
    """Write the settings that variables such as JAX_DEBUG_NANS request.

    The variable of Plait's own setting (PLAIT_PLATFORM) takes precedence.  Settings that cannot
    change any more keep their values.
    """
    for name in SETTINGS:
        text = os.environ.get(name.upper())
        own = _OWN_NAMES.get(name, name.removeprefix("jax_"))
        if text is None or name == "jax_enable_x64" or f"PLAIT_{own.upper()}" in os.environ:
            continue
        if not plait.config.is_frozen(own):
            CONFIG.update(name, _from_text(name, text))


def _from_text(name: str, text: str) -> Any:
    """Return the value of a setting that a variable spells."""
    kind = SETTINGS[name].kind
    convert = {"bool": lambda x: _WORDS[x.lower()], "int": int, "float": float}.get(kind, str)
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise ArgumentError(
            f"{name.upper()} must be a value of type {kind}, got {text!r}",
            fix=f"its default is {SETTINGS[name].default!r}",
        ) from None


def set_cache_dir(path: Any) -> None:
    """Keep compiled programs in this folder."""
    CONFIG.update("jax_compilation_cache_dir", str(path))


def block_of(name: str) -> Callable[[Any], Any]:
    """Return the function `jax.<name>`: it writes a setting for a block."""

    @contextmanager
    def block(new_val: bool = True) -> Iterator[None]:
        before = CONFIG.read(name)
        CONFIG.update(name, new_val)
        try:
            yield
        finally:
            CONFIG.update(name, before)

    block.__name__ = block.__qualname__ = name.removeprefix("jax_")
    block.__doc__ = f"Write {name} for a block."
    return block
