"""Settings: few, explicit, and never a silent change of results somewhere else.

    import plait
    plait.config.default_float = "float64"          # until changed back
    with plait.config(default_float="float64"): ... # for a while

Every setting can be given by the environment too, as `PLAIT_` and its name in capitals.

Invariant: every cache whose contents depend on settings has `config.state` in its keys, an object
that is the same exactly when all settings are.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .errors import LateSetting, PlaitError
from .living import Living
from .tracebacks import border, show_all

__all__ = ["Config", "config"]


def _flag(x: bool | str) -> bool:
    if isinstance(x, str):
        words = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
        return words[x.lower()]
    return bool(x)


_flag.__name__ = "True or False"


def _one_of(*names: str):
    def read(x):
        name = x if isinstance(x, str) else getattr(x, "__name__", str(x))
        if name not in names:
            raise ValueError(name)
        return name

    read.__name__ = " or ".join(names)
    return read


def _axes_of_devices(x: object) -> Any:
    if x is not None and not hasattr(x, "axis_names"):
        raise TypeError(x)
    return x


_axes_of_devices.__name__ = "a mesh or None"


def _platform(x: str | None) -> str | None:
    if x is not None and not isinstance(x, str):
        raise TypeError(x)
    name, _, more = (x or "").partition(",")
    if more:
        raise ValueError(x)
    return name.strip().lower() or None


_platform.__name__ = 'the name of one platform ("cpu", "cuda", "tpu", ...) or None'


def user_cache() -> str | None:
    """Return the user's folder for files that Plait can make again; None if the system has no place
    for them."""
    said = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if os.path.isabs(said):
        return os.path.join(said, "plait")
    home = os.path.expanduser("~")
    if sys.platform == "win32" or not os.path.isabs(home):
        return None
    caches = os.path.join("Library", "Caches") if sys.platform == "darwin" else ".cache"
    return os.path.join(home, caches, "plait")


def _folder(x: Any) -> str | None:
    if x is None or x is False or x in ("", "0"):
        return None
    path = os.fspath(x)
    if not isinstance(path, str):
        raise TypeError(x)
    return os.path.abspath(os.path.expanduser(path))


_folder.__name__ = "the path of a folder, or None to keep nothing on disk"


def _bytes(x: Any) -> int:
    if isinstance(x, bool) or int(x) < 0:
        raise ValueError(x)
    return int(x)


_bytes.__name__ = "a number of bytes"


def _seconds(x: Any) -> float:
    if isinstance(x, bool) or not float(x) >= 0:
        raise ValueError(x)
    return float(x)


_seconds.__name__ = "a number of seconds, not below 0"


def named_numbers(text: str) -> dict[str, int]:
    """Return the numbers of a text such as "reduction.longest=4,attention.tile=32"."""
    parts = [part.split("=") for part in text.replace(" ", "").split(",") if part]
    return {name: int(number) for name, number in parts}


def _limits(x: Any) -> str:
    given = named_numbers(x) if isinstance(x, str) else dict(x or {})
    given = {str(name): int(n) for name, n in given.items()}
    if not all("." in name and n >= 0 for name, n in given.items()):
        raise ValueError(x)
    return ",".join([f"{name}={n}" for name, n in sorted(given.items())])


_limits.__name__ = 'limits with their numbers, as in "reduction.longest=4,attention.tile=32"'

_guard = _one_of("allow", "log", "disallow", "log_explicit", "disallow_explicit")

_SETTINGS: dict[str, tuple[Any, Any, str]] = {
    "default_float": (
        "float32",
        _one_of("float32", "float64"),
        "dtype of Python floats that meet nothing stronger",
    ),
    "default_int": (
        "int32",
        _one_of("int32", "int64"),
        "dtype of Python ints that meet nothing stronger",
    ),
    "x64": (True, _flag, "False: 64-bit values become 32-bit where they enter"),
    "jit": (True, _flag, "False: jitted functions, branches and loops are run in Python"),
    "platform": (
        None,
        _platform,
        "the platform; by default an accelerator whose plugin finds one, else the CPU",
    ),
    "cpu_devices": (1, int, "virtual CPU devices; before the first array is made"),
    "keep_memory": (
        False,
        _flag,
        "keep freed memory (GNU C library), for large results; before the first array is made",
    ),
    "cpu_forms": (
        True,
        _flag,
        "False: operations are given to the CPU's compiler as they are written",
    ),
    "cpu_limits": (
        "",
        _limits,
        "numbers measured on this processor, on which the choice of such a form depends",
    ),
    "checks": (False, _flag, "verify every value that a rule returns, and every new Program"),
    "source_lines": (
        False,
        _flag,
        "executables carry names of functions and lines of the user's files, for profilers; equal "
        "programs of other lines are compiled again",
    ),
    "compile_notice": (
        10.0,
        float,
        "seconds after which a compilation that is not done yet is logged; 0: never",
    ),
    "explain_cache_misses": (False, _flag, "log why a function is traced, each time one is"),
    "default_copy": (True, _flag, "False: device_put returns an array that is there already"),
    "numpy_dtype_promotion": (
        "standard",
        _one_of("standard", "strict"),
        "strict: arrays of different dtypes are not promoted, but refused",
    ),
    "numpy_scalars": (
        "weak",
        _one_of("weak", "strong"),
        "numpy's scalars of 64 bits: weak, as Python's numbers, or strong, as arrays",
    ),
    "purity_warning": (
        True,
        _flag,
        "warn where a value has changed that a jitted function read while it was traced",
    ),
    "promotion_warning": (
        True,
        _flag,
        "warn where an array of numpy of 64 bits turns a computation with 32 bits into one with 64",
    ),
    "numpy_rank_promotion": (
        "allow",
        _one_of("allow", "warn", "raise"),
        "treatment of arrays with different numbers of axes",
    ),
    "default_matmul_precision": (
        "default",
        _one_of("default", "high", "highest"),
        "how exact products are on accelerators, unless a call says so",
    ),
    "default_prng_impl": ("threefry2x32", str, "the generator of keys where none is named"),
    "check_static_indices": (
        True,
        _flag,
        "False: static positions out of range are treated as computed ones, clamped where elements "
        "are read and dropped where they are written",
    ),
    "debug_key_reuse": (False, _flag, "a random key that is used twice is an error"),
    "mesh": (
        None,
        _axes_of_devices,
        "devices with named axes, for specs that name axes alone; set by `with mesh:`",
    ),
    "transfer_guard_host_to_device": (
        "allow",
        _guard,
        "treatment of arrays that are copied from the host to a device",
    ),
    "transfer_guard_device_to_host": (
        "allow",
        _guard,
        "treatment of arrays that are read on the host",
    ),
    "transfer_guard_device_to_device": (
        "allow",
        _guard,
        "treatment of arrays that are copied between devices",
    ),
    "traceback": (
        "filtered",
        _one_of("filtered", "full"),
        "full: tracebacks show frames of Plait, too, not user code alone",
    ),
    "cache_dir": (
        user_cache(),
        _folder,
        "folder where executables are kept for later processes; None: they are not",
    ),
    "cache_size": (
        1 << 30,
        _bytes,
        "bytes that they may take there; the longest unused are removed",
    ),
    "cache_seconds": (
        0.0,
        _seconds,
        "seconds that compiling must take for the executable to be kept there",
    ),
    "tier": (
        "full",
        _one_of("full", "fast", "both"),
        "how long the compiler may take; both: fast first, and full as soon as a thread has it",
    ),
    "eager_programs": (
        True,
        _flag,
        "run as one program what a transformation does outside of jit, once it does it again",
    ),
    "ragged_fallback": (
        "auto",
        _one_of("auto", "warn", "error"),
        "what has no rule for sizes that differ is done for examples of equal sizes together, if "
        "they are known; warn: and said; error: it is refused",
    ),
    "plugins": ("all", str, "which installed plugins may be used: all, off, or names, by commas"),
}


def wide(on: bool) -> dict[str, Any]:
    """Return the settings that give Python numbers 64 bits; if `on` is false, 32 bits
    everywhere."""
    try:
        bits = "64" if _flag(on) else "32"
    except (ValueError, KeyError, TypeError):
        return {"x64": on}  # which is refused when it is set, with the values that there are
    return {"x64": _flag(on), "default_float": "float" + bits, "default_int": "int" + bits}


GUARDS = tuple([name for name in _SETTINGS if name.startswith("transfer_guard_")])
"""The settings that `transfer_guard` sets together."""

_FILTERING = {
    "off": "full",
    **dict.fromkeys(("auto", "tracebackhide", "remove_frames", "quiet_remove_frames"), "filtered"),
}

_FLAGS = {
    "jax_enable_x64": wide,
    "jax_disable_jit": lambda on: {"jit": not _flag(on)},
    "jax_enable_checks": lambda on: {"checks": on},
    "jax_compilation_cache_dir": lambda folder: {"cache_dir": folder},
    "jax_num_cpu_devices": lambda n: {"cpu_devices": n},
    "jax_platform_name": lambda name: {"platform": name},
    "jax_platforms": lambda name: {"platform": name},
    "jax_traceback_filtering": lambda how: {"traceback": _FILTERING.get(how, how)},
    "jax_transfer_guard": lambda level: dict.fromkeys(GUARDS, level or "allow"),
    **{"jax_" + name: lambda level, name=name: {name: level or "allow"} for name in GUARDS},
    **{
        "jax_" + name: lambda x, name=name: {name: x}
        for name in (
            "check_static_indices",
            "debug_key_reuse",
            "default_matmul_precision",
            "default_prng_impl",
            "explain_cache_misses",
            "numpy_dtype_promotion",
            "numpy_rank_promotion",
        )
    },
}
"""Functions from values of JAX's settings to settings of Plait, for `config.update`."""

_READ: "dict[str, Callable[[dict[str, Any]], Any]]" = {
    "jax_enable_x64": lambda values: values["default_float"] == "float64",
    "jax_disable_jit": lambda values: not values["jit"],
    "jax_enable_checks": lambda values: values["checks"],
    "jax_compilation_cache_dir": lambda values: values["cache_dir"],
    "jax_num_cpu_devices": lambda values: values["cpu_devices"],
    "jax_platform_name": lambda values: values["platform"],
    "jax_platforms": lambda values: values["platform"],
    "jax_traceback_filtering": lambda values: "off" if values["traceback"] == "full" else "auto",
    "jax_transfer_guard": lambda values: values[GUARDS[0]],
}
"""The values of JAX's settings by their names; all others have Plait's name behind `jax_`."""

_BYSTANDERS = frozenset(
    (
        "explain_cache_misses",
        "compile_notice",
        "promotion_warning",
        "purity_warning",
        "default_copy",
        "traceback",
        "platform",
        "cache_dir",
        "cache_size",
        "cache_seconds",
        "keep_memory",
        *GUARDS,
    )  # fmt: skip
)
"""Settings that are not part of cache keys: changing them changes no program."""


class State(tuple):
    """The values of all settings that matter to caches; one object for one set of values."""

    __slots__ = ()
    _all: "dict[tuple, State]" = {}

    @classmethod
    def of(cls, values: dict[Any, Any]) -> "State":
        key = tuple([item for item in values.items() if item[0] not in _BYSTANDERS])
        return cls._all.setdefault(key, cls(key))


class Config:
    """The settings of the process, as attributes; calling it sets some for a `with` block.

    Settings belong to the process, not to a thread or task.  Blocks in several of them may overlap
    and end in any order.  While several open blocks set a setting, the one that began last wins.
    When all have ended, every change is undone.  An assignment inside a block that sets the same
    setting lasts until the block ends.

    >>> from plait import config
    >>> with config(default_float="float64"):
    ...     config.default_float
    'float64'
    """

    _values: dict[str, Any]
    _outside: dict[str, Any]
    _blocks: list[dict[str, Any]]
    _lock: Any
    state: State
    cpu_forms: bool
    cpu_limits: str
    checks: bool
    guarded: bool
    jit: bool
    promotion_warning: bool
    compile_notice: float
    purity_warning: bool
    numpy_scalars: str
    x64: bool
    check_static_indices: bool
    debug_key_reuse: bool
    default_matmul_precision: str
    cache_dir: str | None
    cache_size: int
    cache_seconds: float
    source_lines: bool
    tier: str

    def __init__(self):
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_frozen", {})
        object.__setattr__(self, "_watchers", Living())
        object.__setattr__(self, "_blocks", [])
        object.__setattr__(self, "_lock", threading.RLock())
        values: dict[str, Any] = {}
        for name, (default, _, _) in _SETTINGS.items():
            values[name] = self._read(name, os.environ.get("PLAIT_" + name.upper(), default))
        object.__setattr__(self, "_outside", values)
        self._adopt(dict(values))

    def _read(self, name: str, value):
        if name not in _SETTINGS:
            raise PlaitError(
                f"there is no setting {name!r}", fix=f"the settings are {', '.join(_SETTINGS)}"
            )
        read = _SETTINGS[name][1]
        try:
            return read(value)
        except (ValueError, KeyError, TypeError):
            raise PlaitError(
                f"setting {name!r} cannot be {value!r}", fix=f"give {read.__name__}"
            ) from None

    def _adopt(self, values: dict) -> None:
        for name, (why, same) in self._frozen.items():
            if values[name] not in (self._values[name], *same):
                raise LateSetting(
                    f"setting {name!r} cannot change any more: {why}",
                    fix=f"set it right after `import plait`, or by PLAIT_{name.upper()}",
                )
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "state", State.of(values))
        object.__setattr__(self, "checks", values["checks"])  # read on hot paths
        object.__setattr__(self, "x64", values["x64"])
        object.__setattr__(self, "jit", values["jit"])
        object.__setattr__(self, "debug_key_reuse", values["debug_key_reuse"])
        object.__setattr__(self, "guarded", any(values[name] != "allow" for name in GUARDS))
        precision = values["default_matmul_precision"]
        object.__setattr__(self, "default_matmul_precision", precision)
        show_all(values["traceback"] == "full")
        self.notify()

    def notify(self) -> None:
        """Call all watchers, as a change of a setting does: they drop executables."""
        for changed in self._watchers.each():
            changed()

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed()` at every change of a setting, for as long as `changed` is alive.

        Only a weak reference is held: a callback that clears a jitted function's cache must not
        keep that function alive.
        """
        self._watchers.add(changed)

    def freeze(self, name: str, why: str, same: tuple[Any, ...] = ()) -> None:
        """Refuse changes of this setting from now on; `why` appears in the error.

        `same` are values that change nothing.
        """
        self._frozen[name] = why, same

    def is_frozen(self, name: str) -> bool:
        """Return whether changes of this setting are refused."""
        return name in self._frozen

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            if name in _READ:
                return _READ[name](self._values)
            if name in _FLAGS:
                return self._values[name[4:]]
            raise AttributeError(
                f"there is no setting {name!r}; the settings are {', '.join(_SETTINGS)}"
            ) from None

    def _in_force(self) -> dict:
        """Return the values outside of all blocks, overridden by those of each block in order."""
        values = dict(self._outside)
        for block in self._blocks:
            values |= block
        return values

    def _assign(self, new: dict) -> None:
        """Change settings until the end of the last block that sets them, if there is one."""
        with self._lock:
            self._adopt({**self._values, **new})
            for name, value in new.items():
                saying = [b for b in self._blocks if name in b]
                (saying[-1] if saying else self._outside)[name] = value

    @border
    def __setattr__(self, name: str, value: object) -> None:
        self._assign({name: self._read(name, value)})

    @border
    def update(self, name: str, value: object) -> None:
        """Assign a setting; `name` may be JAX's, like "jax_enable_x64"."""
        new = _FLAGS[name](value) if name in _FLAGS else {name: value}
        self._assign({k: self._read(k, v) for k, v in new.items()})

    def __call__(self, **settings: object) -> AbstractContextManager[Any]:
        # Values are read here and not where the block begins: a wrong one is on the caller's line.
        return self._in_block({k: self._read(k, v) for k, v in settings.items()})

    @contextmanager
    def _in_block(self, block):
        with self._lock:
            self._adopt({**self._values, **block})
            self._blocks.append(block)
        try:
            yield self
        finally:
            with self._lock:  # blocks that began later may still be open
                self._blocks[:] = [b for b in self._blocks if b is not block]
                self._adopt(self._in_force())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_SETTINGS]

    def __repr__(self) -> str:
        return "\n".join(
            f"{k} = {self._values[k]!r}  # {text}" for k, (_, _, text) in _SETTINGS.items()
        )


config = Config()
