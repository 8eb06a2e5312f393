"""Executables on disk: what one process has compiled, later ones load.

To load a small program takes 1 ms, to compile it 30 ms, and a big one seconds.  An entry is a file
in `config.cache_dir`, named by a digest of everything that its machine code depends on: the code of
the module, the devices, all flags of the compiler as it reads them, the versions of jaxlib and of
this format, and the processor.

The runtime trusts what it is given to load: it refuses files that were cut, but runs most of those
with a wrong bit, and any other program's.  Hence every entry says by that digest what it is of, and
has a checksum; and as a checksum proves nothing about who wrote a file, entries are taken only from
a folder, and in files, of this user that nobody else can write.

Invariant: no entry is the cause of an error, or of another result: one that is missing, damaged or
foreign means a compilation.  Entries appear whole (they are renamed into place), so that processes
that read, write and evict at the same time need no lock.
"""

import os
import stat
import sys
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

from .._base import jaxlib_api
from .._base.config import config, user_cache
from .._base.errors import CacheWarning
from .._base.source import warn
from .._core.buffers import client, devices, platform
from . import apart

_FORMAT = b"plait executable 2\n"
"""What an entry begins with; another number when the meaning of entries changes."""
_DIGEST = 32
_LARGEST = 1 << 31
"""Bytes that no executable has: the runtime writes them as messages of fewer."""
_HEAD = len(_FORMAT) + 2 * _DIGEST
"""The bytes before those of the executable: the format, what the entry is of, and a checksum of
that and of the executable."""
_SUFFIX, _UNFINISHED = ".xla", ".tmp"
_NAME = 2 * _DIGEST
_ABANDONED = 3600.0
"""Seconds after which an unfinished file belongs to a process that is gone."""

_lock = Lock()
_written: dict[str, int | None] = {}
"""How many bytes were written to a folder since its size was last added up."""


def _tell(text: str) -> None:
    """Warn, once of the same thing."""
    warn(text, CacheWarning, once=True)


def path_of(code: bytes, ids: tuple[int, ...], options: Any, asked: Any) -> str | None:
    """Return the path of the entry of a module; None if it is not to be kept.

    Args:
      code: the module, as the compiler is given it.
      ids: numbers of the devices that run it.
      options: the compiler's options, as jaxlib's object.
      asked: names and values of flags that were given for this program.
    """
    folder = config.cache_dir
    # Not seen yet: that what accelerators load is what they compiled, whatever drives them.
    if folder is None or platform() != "cpu":
        return None
    if _writes_files(asked) or not _usable(folder):
        return None
    from hashlib import sha256

    digest = sha256()
    for part in (
        _FORMAT,
        _process(),
        repr((ids, asked, apart.VERSION)).encode(),
        jaxlib_api.options_bytes(options),
        code,
    ):
        digest.update(len(part).to_bytes(8, "little"))  # where one ends and the next begins
        digest.update(part)
    return os.path.join(folder, digest.hexdigest() + _SUFFIX)


def loaded(path: str, load: Callable[[bytes], Any]) -> Any:
    """Return what `load` makes of the entry at a path; None if there is none that can be used."""
    try:
        data = _read(path)
        if data is None:
            return None
        found = load(data)
    except (ValueError, OSError, jaxlib_api.RuntimeFailure) as e:
        said = (str(e).splitlines() or [type(e).__name__])[0]
        _tell(
            f"an executable on disk can not be used ({said}), and is compiled anew: {path}",
        )
        return None
    try:
        os.utime(path)  # what was used last is evicted last
    except OSError:
        pass
    return found


def keep(path: str, serialize: Callable[[], bytes]) -> None:
    """Write an executable to the entry at a path, if it can be serialized."""
    try:
        data = serialize()
    except (jaxlib_api.RuntimeFailure, ValueError):  # of some the runtime can not
        return
    limit = config.cache_size
    size = _HEAD + len(data)
    if size > limit:
        return
    folder = os.path.dirname(path)
    try:
        _write(path, data)
        with _lock:
            before = _written.get(folder)
            _written[folder] = (before or 0) + size
            # To add up a folder takes a while: it is done at first, and then each time that this
            # process has written a good part of the limit.
            due = before is None or before + size > limit // 32
            if due:
                _written[folder] = 0
        if due:
            _evict(folder, limit)
    except OSError as e:
        if folder != user_cache():  # if nobody asked for it, nobody misses it
            _tell(f"executables can not be kept in {folder}: {e.strerror or e}")


def _writes_files(asked: Any) -> bool:
    """Whether the compiler writes files by which somebody wants to see what it does."""
    return any("dump" in text for text in (os.environ.get("XLA_FLAGS", ""), repr(asked)))


@cache
def circumstances() -> dict[str, Any]:
    """What machine code depends on besides the module and the options, by name: versions, the
    platform, the processor, and how many threads the compiler divides loops for."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "jaxlib": jaxlib_api.JAXLIB_VERSION,
        "platform": client().platform,
        "runtime": client().platform_version,
        "devices": len(devices()),
        "threads": threads,
        "NPROC": os.environ.get("NPROC"),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        "system": sys.platform,
        "machine": jaxlib_api.processor(devices()),
        "processor": _features(),
    }


@cache
def _process() -> bytes:
    return repr(tuple(circumstances().values())).encode()


def _features() -> tuple[str, ...]:
    """What the operating system says of the first processor: its model, and what it can do."""
    from platform import machine, processor

    kinds = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ", "isa")
    try:
        with open("/proc/cpuinfo", "rb") as file:  # all of it takes long where there are many
            text = file.read(1 << 14).decode("ascii", "replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    lines = [line for line in first if line.startswith(kinds)]
    # Python asks a command for the name of the processor, which takes as long as five executables
    # take to load: only where there is no file that says more
    return (machine(), *(lines or [processor()]))


# ---- folders and files -----------------------------------------------------------------------


def _usable(folder: str) -> bool:
    """Whether the folder is there (it is made) and belongs to this user alone.

    It is asked each time, which takes 2 us: a folder can be replaced while a process runs.
    """
    try:
        try:
            found = os.stat(folder)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.stat(folder)
        if not os.path.isdir(folder):
            raise NotADirectoryError(20, "it is no folder")
    except OSError as e:
        if folder != user_cache():
            _tell(f"executables can not be kept in {folder}: {e.strerror or e}")
        return False
    if _foreign(found):
        _tell(
            f"executables are not kept in {folder}, which others can write to or read: "
            f"make it yours alone (chmod 700), or set plait.config.cache_dir to another folder",
        )
        return False
    return True


def _foreign(found: os.stat_result, others: int = 0o077) -> bool:
    """Whether what was found belongs to another user, or lets others do what they shall not."""
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are his own
        return False
    return found.st_uid != os.geteuid() or bool(found.st_mode & others)


def _read(path: str) -> bytes | None:
    """Return the bytes of an executable; None if there is no entry.

    Raises ValueError if it is damaged or that of another program, or another user may have written
    it.
    """
    try:
        # What is no file must not be waited for, as a pipe that nobody writes would be.
        descriptor = os.open(path, os.O_RDONLY | _flags("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no file")
        if _foreign(found, 0o022):
            raise ValueError("others may have written it")
        if found.st_size > _LARGEST:  # reading it could take all memory
            raise ValueError("it is too large")
        head, data = file.read(_HEAD), file.read()
    if head != _head(path, data):
        of = head[len(_FORMAT) :][:_DIGEST]
        raise ValueError("it is damaged" if of == _digest_in(path) else "it is of another program")
    return data


def _head(path: str, data: bytes) -> bytes:
    """Return what the entry at a path begins with."""
    from hashlib import sha256

    of = _digest_in(path)
    return _FORMAT + of + sha256(of + data).digest()


def _digest_in(path: str) -> bytes:
    """Return the digest of what the entry at a path is of."""
    return bytes.fromhex(os.path.basename(path)[:_NAME])


def _flags(*names: str) -> int:
    """Return flags of `os.open`, of those that the platform has."""
    return sum(getattr(os, name, 0) for name in names)


def _write(path: str, data: bytes) -> None:
    """Write an entry so that it is there wholly or not at all, whoever else writes or reads it."""
    unfinished = f"{path}.{os.getpid()}-{os.urandom(6).hex()}{_UNFINISHED}"
    descriptor = os.open(
        unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_BINARY"), 0o600
    )
    try:
        with open(descriptor, "wb") as file:
            file.write(_head(path, data))
            file.write(data)
        os.replace(unfinished, path)
    except BaseException:
        _remove(unfinished)
        raise


def _evict(folder: str, limit: int) -> None:
    """Remove what was not used for longest, until an eighth of the limit is free.

    Nothing is removed below the limit, nor what is no entry of ours.  Another process may be doing
    the same: what it has removed is gone for both.
    """
    import time

    found: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            head, rest = entry.name[:_NAME], entry.name[_NAME:]
            if not (set(head) <= set("0123456789abcdef") and rest.startswith(_SUFFIX)):
                continue
            try:
                told = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if rest == _SUFFIX:
                found.append((told.st_mtime, told.st_size, entry.path))
            elif rest.endswith(_UNFINISHED) and time.time() - told.st_mtime > _ABANDONED:
                _remove(entry.path)
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit - limit // 8:
            return
        _remove(path)
        total -= size


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:  # another process was faster, or (on Windows) is reading it
        pass
