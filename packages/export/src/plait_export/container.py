"""The file format of artifacts: a zip archive of a manifest and StableHLO.

Reading a file runs none of its contents.  Members are stored uncompressed with a fixed date: equal
contents give equal bytes, and any unzip tool shows them.  `manifest.json` comes first.  Every
reader must support these fields of it:

    format      the version of this format that it was written in;
    min_reader  the oldest version of the format that a reader must support;
    requires    names of the features that a reader must support, or refuse the file;
    members     for each other member its size, SHA-256, and version of StableHLO.

`main.mlirbc` is the function.  A reader may ignore its derivatives.  `vjp1.mlirbc` is the
derivative of `main`, and `vjp2.mlirbc` the derivative of `vjp1.mlirbc`.  The field `vjp` lists
which functions outside StableHLO each of them calls.  Their types follow from those of the
function.  They call `plait.constant` with the number of a constant that an earlier module has.

`executable0.xla` and others hold machine code, which the manifest describes in `executables`.  Only
callers that trust the file use them.

`weights.safetensors` holds the first arguments of modules.  The manifest names them in `weights`,
in order, for the function and for each derivative.  The data begin at a multiple of 64 bytes of the
file, so that devices can use them in the mapped file.

Invariant: `unpack` returns the arguments of `pack`, bit for bit, or raises an ArtifactError that
names the damage.  A reader ignores unknown fields, and refuses unknown features that are required.
"""

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import IO, Any

from .errors import ArtifactError

FORMAT = 2
"""The newest version of the format.  In version 2, functions for several platforms take the number
of the platform as an argument, and require "platform-argument".  Other artifacts are written as
version 1, which older readers support."""

FEATURES = frozenset({
    "symbolic-sizes", "registered-nodes", "platform-argument", "separate-weights",
    "meshes", "executables",
})  # fmt: skip
"""Features that an artifact may require."""

MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
EXECUTABLE = ".xla"
"""The suffix of the names of executables."""

Member = bytes | memoryview | Sequence[memoryview]
"""The bytes of a member; those of weights may be in pieces."""

Newest = tuple[float, ...] | Callable[[], tuple[float, ...]]
"""A version of StableHLO, or a function that returns it, since that imports a large library."""

_ALWAYS_READ = (1, 9, 0)
"""A version of StableHLO that every supported jaxlib reads."""

_DATE = (1980, 1, 1, 0, 0, 0)
_FLAGGED = 0x1 | 0x40 | 0x2000  # the three flags of encryption
_HEADER = re.compile(rb"ML\xefR.StableHLO_v(\d+)\.(\d+)\.(\d+)\x00", re.S)
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    LookupError,
    ValueError,
    RuntimeError,  # and NotImplementedError
    OverflowError,
)
"""Exceptions that Python's zip reader raises for damaged archives."""


_ALIGNED = 64
_PADDING = 0xD935
"""The id of the extra field that other tools use to align members of zip archives, too."""

_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_NEEDS_64_BITS = 20
"""Bytes of the extra field of a member whose size needs more than 32 bits."""


def pack(manifest: Mapping[str, Any], members: Mapping[str, Member], before: int = 0) -> bytes:
    """Return the archive of the members and of the manifest, with the field `members` added.

    Args:
      manifest: fields that JSON can hold.
      members: portable StableHLO artifacts, executables, and weights, by file name.
      before: the number of bytes before the archive in the file that it is written to.
    """
    out = io.BytesIO()
    write(out, manifest, members, before)
    return out.getvalue()


def write(
    out: IO[bytes], manifest: Mapping[str, Any], members: Mapping[str, Member], before: int = 0
) -> None:
    """Write the archive that `pack` returns to a file, at its current position."""
    described = {name: _described(name, data) for name, data in members.items()}
    text = json.dumps({**manifest, "members": described}, sort_keys=True, indent=1, allow_nan=False)
    last = [(WEIGHTS, members[WEIGHTS])] if WEIGHTS in members else []
    modules = sorted([item for item in members.items() if item[0] != WEIGHTS])
    with zipfile.ZipFile(_From(out), "w", zipfile.ZIP_STORED) as archive:  # type: ignore[arg-type]
        for name, data in [(MANIFEST, text.encode()), *modules, *last]:
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every system
            if name == WEIGHTS:
                _write_aligned(archive, info, _pieces(data), before)
            else:
                archive.writestr(info, data)  # type: ignore[arg-type]


class _From:
    """A view of a file that begins at its current position."""

    def __init__(self, file: IO[bytes]):
        self._file, self._start = file, file.tell()
        self.write, self.flush = file.write, file.flush

    def tell(self) -> int:
        return self._file.tell() - self._start

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset + (0 if whence else self._start), whence) - self._start


def _pieces(data: Member) -> Sequence[memoryview]:
    return [memoryview(data)] if isinstance(data, bytes | memoryview) else data


def _write_aligned(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, pieces: Sequence[memoryview], before: int
) -> None:
    """Write a member whose data begin at a multiple of 64 bytes of the file."""
    info.file_size = sum(p.nbytes for p in pieces)
    # The rule of zipfile for the 64-bit extra field, whose length moves the data.
    large = info.file_size * 1.05 > zipfile.ZIP64_LIMIT
    at = before + archive.start_dir + _LOCAL_HEADER.size + len(info.filename) + 4
    padding = -(at + (_NEEDS_64_BITS if large else 0)) % _ALIGNED
    info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    with archive.open(info, "w", force_zip64=large) as member:
        for piece in pieces:
            member.write(piece)


def is_raw(name: str) -> bool:
    """Return whether a member holds bytes other than StableHLO."""
    return name == WEIGHTS or name.endswith(EXECUTABLE)


def _described(name: str, data: Member) -> dict[str, Any]:
    pieces, digest = _pieces(data), sha256()
    for piece in pieces:
        digest.update(piece)
    found = {"bytes": sum(p.nbytes for p in pieces), "sha256": digest.hexdigest()}
    if is_raw(name):
        return found
    return {**found, "stablehlo": ".".join(map(str, stablehlo_version(pieces[0])))}


def unpack(data: bytes | memoryview, newest: Newest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (manifest, members) of an archive.  Weights are a view of `data`.

    Args:
      data: the archive.
      newest: the newest readable version of StableHLO, or a function that returns it.

    Raises ArtifactError if it is damaged, or needs a newer reader.
    """
    members = _members(data)
    manifest = _manifest(members.pop(MANIFEST, None))
    described = field(manifest, "members", dict)
    if described.keys() != members.keys():
        raise ArtifactError(
            f"the artifact is damaged: it holds {sorted(members)} and its manifest names "
            f"{sorted(described)}",
        )
    for name, member in members.items():
        _check_member(name, member, described[name], newest)
    return manifest, members


def without_weights(data: bytes | memoryview, newest: Newest) -> tuple[bytes, memoryview | None]:
    """Return (an archive without weights, the weights, whose checksum is verified).

    An archive without weights is returned unverified, with None.
    """
    members = _members(data)
    if WEIGHTS not in members:
        return bytes(data), None
    manifest = _manifest(members.pop(MANIFEST, None))
    described, weights = field(manifest, "members", dict), members.pop(WEIGHTS)
    _check_member(WEIGHTS, weights, described.get(WEIGHTS), newest)
    rest = {k: v for k, v in described.items() if k != WEIGHTS}
    return _stored({**manifest, "members": rest}, members), weights


def _stored(manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> bytes:
    """Return an archive of an unverified manifest and unverified members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, member in [(MANIFEST, json.dumps(manifest).encode()), *members.items()]:
            archive.writestr(zipfile.ZipInfo(name, _DATE), member)
    return out.getvalue()


def _members(data: bytes | memoryview) -> dict[str, Any]:
    start = bytes(data[:16])
    if not start.startswith(b"PK"):
        raise ArtifactError(
            f"these {len(data)} bytes are not an artifact: they start with {start!r}",
            fix="give what Exported.serialize() returned",
        )
    try:
        with zipfile.ZipFile(_Window(data)) as archive:
            found: dict[str, Any] = {}
            for info in archive.infolist():
                plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & _FLAGGED
                if not plain or info.filename in found:
                    raise zipfile.BadZipFile(f"{info.filename!r} is not stored as it is, once")
                found[info.filename] = (
                    _in_place(archive, info, data)
                    if info.filename == WEIGHTS
                    else archive.read(info)
                )
            return found
    except _DAMAGE as e:
        raise _damaged(e) from None


class _Window(io.RawIOBase):
    """A readable file over bytes."""

    def __init__(self, data: bytes | memoryview):
        self._data, self._at = memoryview(data), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = (0, self._at, len(self._data))[whence]
        if start + offset < 0:
            raise ValueError("before the first byte")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        found = self._data[self._at : self._at + len(buffer)]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


def _in_place(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes | memoryview
) -> memoryview:
    """Return a member as a view of the archive; the caller must compare its checksum."""
    with archive.open(info):  # raises unless the local header agrees with the directory
        pass
    header = memoryview(data)[info.header_offset :][: _LOCAL_HEADER.size]
    *_, name, extra = _LOCAL_HEADER.unpack(header)
    start = info.header_offset + _LOCAL_HEADER.size + name + extra
    found = memoryview(data)[start : start + info.file_size].toreadonly()
    if len(found) != info.file_size or info.compress_size != info.file_size:
        raise zipfile.BadZipFile(f"{info.filename!r} is longer than the archive")
    return found


def _damaged(e: Exception) -> ArtifactError:
    return ArtifactError(f"the artifact is damaged: {str(e) or type(e).__name__}")


def _manifest(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise ArtifactError(
            f"this archive is not an artifact: it has no {MANIFEST}",
            fix="give what Exported.serialize() returned",
        )
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ArtifactError(f"the artifact is damaged: {MANIFEST}: {e}") from None
    if not isinstance(manifest, dict):
        raise ArtifactError(f"the artifact is damaged: {MANIFEST} is not an object")
    producer = manifest.get("producer", "an unknown producer")
    least = field(manifest, "min_reader", int)
    field(manifest, "format", int)
    if least > FORMAT:
        raise ArtifactError(
            f"the artifact, written by {producer}, needs a reader of format {least}, and this one "
            f"reads up to format {FORMAT}",
            fix="python -m pip install --upgrade plait-export",
        )
    unknown = {*texts(manifest, "requires")} - FEATURES
    if unknown:
        raise ArtifactError(
            f"the artifact, written by {producer}, requires what this reader does not know: "
            f"{', '.join(sorted(unknown))}",
            fix="python -m pip install --upgrade plait-export",
        )
    return manifest


def field(of: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a field of the manifest; raise ArtifactError if it is missing or of another type."""
    value = of.get(name) if isinstance(of, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        raise ArtifactError(
            f"the artifact is damaged: {MANIFEST} has no proper field {name!r}",
        )
    return value


def texts(of: object, name: str) -> list[str]:
    """Return a field of the manifest that is a list of strings, or raise ArtifactError."""
    found = field(of, name, list)
    if not all(isinstance(t, str) for t in found):
        raise ArtifactError(
            f"the artifact is damaged: {MANIFEST}: {name!r} are not texts",
        )
    return found


def _check_member(
    name: str, data: bytes | memoryview, described: dict[str, Any], newest: Newest
) -> None:
    same = len(data) == field(described, "bytes", int)
    if not same or sha256(data).hexdigest() != field(described, "sha256", str):
        raise ArtifactError(
            f"the artifact is damaged: {name} is not what its checksum says",
        )
    if is_raw(name):
        return
    version = stablehlo_version(data)
    if ".".join(map(str, version)) != field(described, "stablehlo", str):
        raise ArtifactError(f"the artifact is damaged: the version of {name}")
    if version <= _ALWAYS_READ:
        return
    newest = newest() if callable(newest) else newest
    if version > newest:
        raise ArtifactError(
            f"{name} is StableHLO {'.'.join(map(str, version))}, newer than the "
            f"{'.'.join(map(str, newest))} that the jaxlib here reads",
            fix="python -m pip install --upgrade jaxlib",
        )


def stablehlo_version(data: bytes | memoryview) -> tuple[int, ...]:
    """Return the version of StableHLO in the header of a portable artifact.

    Raises ArtifactError if it has no such header.
    """
    found = _HEADER.match(data)
    if found is None:
        raise ArtifactError("the artifact is damaged: it holds no portable StableHLO")
    return tuple(map(int, found.groups()))
