"""Executables on disk: later processes load the modules that one process has compiled.

Loading a small program takes 1 ms and compiling it 30 ms; a big one takes seconds to compile.  An
entry is a file in `config.cache_dir`.  Its name is a digest of everything that its machine code
depends on: the code of the module, the devices, all compiler flags as the compiler reads them, the
versions of jaxlib and of this format, and the processor.

The runtime refuses truncated files, but it runs most files with a wrong bit, and those of any other
program.  Hence every entry holds the digest in its name, and a checksum.  A checksum does not prove
who wrote a file.  So an entry is used only if this user owns the file and its folder, and no other
user can write to them.

Invariant: no entry causes an error or changes a result: if it is missing, damaged or foreign, the
module is compiled.  Entries appear whole (they are renamed into place), so processes that read,
write and evict at the same time need no lock.
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
"""The first bytes of an entry; raise the number when the meaning of entries changes."""
_DIGEST = 32
_LARGEST = 1 << 31
"""More bytes than any executable has: the runtime writes them as protobuf messages, which must be
smaller."""
_HEAD = len(_FORMAT) + 2 * _DIGEST
"""The number of bytes before the executable: the format, the digest of the name, and a checksum of
the digest and the executable."""
_SUFFIX, _UNFINISHED = ".xla", ".tmp"
_NAME = 2 * _DIGEST
_ABANDONED = 3600.0
"""Seconds after which the process that wrote an unfinished file counts as dead."""

_lock = Lock()
_written: dict[str, int | None] = {}
"""Bytes written to a folder since its size was last computed."""


def _tell(text: str) -> None:
    """Warn, once for each text."""
    warn(text, CacheWarning, once=True)


def path_of(
    code: bytes, ids: tuple[int, ...], options: object, asked: tuple[tuple[Any, ...], ...]
) -> str | None:
    """Return the path of the entry of a module; None if the module must not be stored.

    Args:
      code: the bytes of the module, as the compiler gets them.
      ids: numbers of the devices that run it.
      options: the compiler's options, as jaxlib's object.
      asked: names and values of the flags set for this program.
    """
    folder = config.cache_dir
    # Loading executables has not been tested on other accelerators.
    if folder is None or platform() not in ("cpu", "cuda"):
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
        digest.update(len(part).to_bytes(8, "little"))  # separates it from the next part
        digest.update(part)
    return os.path.join(folder, digest.hexdigest() + _SUFFIX)


def loaded(path: str, load: Callable[[bytes], Any]) -> Any:
    """Return the result of `load` on the entry at a path; None if no usable entry exists."""
    try:
        data = _read(path)
        if data is None:
            return None
        found = load(data)
    except (ValueError, OSError, jaxlib_api.RuntimeFailure) as e:
        said = (str(e).splitlines() or [type(e).__name__])[0]
        _tell(
            f"an executable on disk cannot be used ({said}), and is compiled anew: {path}",
        )
        return None
    try:
        os.utime(path)  # entries are evicted in the order of their last use
    except OSError:
        pass
    return found


def contents(path: str) -> bytes | None:
    """Return the bytes of the executable at a path; None if no usable entry exists."""
    try:
        return _read(path)
    except (ValueError, OSError):
        return None


def keep(path: str, serialize: Callable[[], bytes]) -> None:
    """Write an executable to the entry at a path, if it can be serialized."""
    try:
        data = serialize()
    except (jaxlib_api.RuntimeFailure, ValueError):  # the runtime cannot serialize some
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
            # Adding up a folder is slow.  It is done when this process first writes to it, and
            # then each time that it has written a good part of the limit.
            due = before is None or before + size > limit // 32
            if due:
                _written[folder] = 0
        if due:
            _evict(folder, limit)
    except OSError as e:
        if folder != user_cache():  # the user did not set the default folder, so no warning
            _tell(f"executables cannot be kept in {folder}: {e.strerror or e}")


def _writes_files(asked: tuple[tuple[Any, ...], ...]) -> bool:
    """Return whether the compiler dumps files for the user, which a cache hit would not write."""
    return any("dump" in text for text in (os.environ.get("XLA_FLAGS", ""), repr(asked)))


@cache
def circumstances() -> dict[str, Any]:
    """Return everything that machine code depends on besides the module and the options, by name.

    These are versions, the platform, the processor, and the number of threads that the compiler
    divides loops for.
    """
    return {
        "jaxlib": jaxlib_api.JAXLIB_VERSION,
        "platform": client().platform,
        "runtime": client().platform_version,
        "devices": len(devices()),
        "threads": jaxlib_api.processors(),
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
    """Return the model and the features of the first processor, from the operating system."""
    from platform import machine, processor

    kinds = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ", "isa")
    try:
        with open("/proc/cpuinfo", "rb") as file:  # reading it for many processors is slow
            text = file.read(1 << 14).decode("ascii", "replace")
    except OSError:
        text = ""
    first = text.partition("\n\n")[0].splitlines()
    lines = [line for line in first if line.startswith(kinds)]
    # `processor` runs a command, which takes as long as loading five executables, so it is used
    # only where /proc/cpuinfo gives nothing.
    return (machine(), *(lines or [processor()]))


# ---- folders and files -----------------------------------------------------------------------


def _usable(folder: str) -> bool:
    """Return whether the folder exists and belongs to this user alone; create it if missing.

    This is checked at each call, which takes 2 us: a folder can be replaced while a process runs.
    """
    try:
        try:
            found = os.stat(folder)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.stat(folder)
        if not os.path.isdir(folder):
            raise NotADirectoryError(20, "it is not a folder")
    except OSError as e:
        if folder != user_cache():
            _tell(f"executables cannot be kept in {folder}: {e.strerror or e}")
        return False
    if _foreign(found):
        _tell(
            f"executables are not kept in {folder}, which others can write to or read: "
            f"make it yours alone (chmod 700), or set plait.config.cache_dir to another folder",
        )
        return False
    return True


def _foreign(found: os.stat_result, others: int = 0o077) -> bool:
    """Return whether a file belongs to another user, or grants others a mode bit in `others`."""
    if not hasattr(os, "geteuid"):  # on Windows, a user's folders are private
        return False
    return found.st_uid != os.geteuid() or bool(found.st_mode & others)


def _read(path: str) -> bytes | None:
    """Return the bytes of an executable; None if the entry does not exist.

    Raises ValueError if the entry is damaged, is of another program, or may have been written by
    another user.
    """
    try:
        # Without O_NONBLOCK, opening a pipe that no process writes to would block forever.
        descriptor = os.open(path, os.O_RDONLY | _flags("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a regular file")
        if _foreign(found, 0o022):
            raise ValueError("others may have written it")
        if found.st_size > _LARGEST:  # reading it could exhaust memory
            raise ValueError("it is too large")
        head, data = file.read(_HEAD), file.read()
    if head != _head(path, data):
        of = head[len(_FORMAT) :][:_DIGEST]
        raise ValueError("it is damaged" if of == _digest_in(path) else "it is of another program")
    return data


def _head(path: str, data: bytes) -> bytes:
    """Return the first bytes of the entry at a path with this executable."""
    from hashlib import sha256

    of = _digest_in(path)
    return _FORMAT + of + sha256(of + data).digest()


def _digest_in(path: str) -> bytes:
    """Return the digest in the name of the entry at a path."""
    return bytes.fromhex(os.path.basename(path)[:_NAME])


def _flags(*names: str) -> int:
    """Return the `os.open` flags of these names, leaving out those that the platform lacks."""
    return sum(getattr(os, name, 0) for name in names)


def _write(path: str, data: bytes) -> None:
    """Write an entry atomically, so that concurrent readers and writers see all of it or none."""
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
    """Remove the entries unused for longest, until an eighth of the limit is free.

    It removes nothing if the folder is below the limit, and only files with the names of entries.
    Another process may evict at the same time; files that it has removed are skipped.
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
