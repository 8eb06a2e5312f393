"""The file format of artifacts: a zip archive of a manifest and StableHLO.

Nothing in it runs.  Members are stored uncompressed with a fixed date, so that equal contents are
equal bytes, and any unzip shows them.  `manifest.json` comes first.  Its fields that every reader
must know:

    format      the version of this format that it was written in
    min_reader  the least version of the format that a reader must know
    requires    names of features that a reader must know; it refuses others
    members     for each other member its size, SHA-256, and version of StableHLO

`main.mlirbc` is the function.  A reader may do without its derivatives: `vjp` says of each, to
what order there are any, which functions outside StableHLO it calls; `vjp1.mlirbc` is that of
`main`, `vjp2.mlirbc` that of the former.  Their types follow from those of the function.  They call
`plait.constant` with the number of a constant that an earlier module has.

Invariant: what `unpack` returns is what `pack` was given, bit for bit, or an ArtifactError is
raised that says what is wrong.  Fields and features unknown to this reader do no harm.
"""

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from .errors import ArtifactError

FORMAT = 2
"""The newest version of the format that is written and read.  In version 2 what is for several
platforms takes the number of one as an argument, and requires "platform-argument"; other artifacts
are written as version 1, which older readers know."""

FEATURES = frozenset({"symbolic-sizes", "registered-nodes", "platform-argument"})
"""What an artifact may require of its reader."""

MANIFEST = "manifest.json"
_DATE = (1980, 1, 1, 0, 0, 0)
_FLAGGED = 0x1 | 0x40 | 0x2000  # encrypted, in one way or another
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
"""What Python's zip reader raises for damaged archives."""


def pack(manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> bytes:
    """The archive of a manifest, completed by what is said of the members, and the members.

    Args:
      manifest: fields that JSON can hold.
      members: portable StableHLO artifacts, by file name.
    """
    described = {name: _described(data) for name, data in members.items()}
    text = json.dumps({**manifest, "members": described}, sort_keys=True, indent=1, allow_nan=False)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in [(MANIFEST, text.encode()), *sorted(members.items())]:
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every system
            archive.writestr(info, data)
    return out.getvalue()


def _described(data: bytes) -> dict[str, Any]:
    version = ".".join(map(str, stablehlo_version(data)))
    return {"bytes": len(data), "sha256": sha256(data).hexdigest(), "stablehlo": version}


def unpack(data: bytes, newest: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(manifest, members) of an archive.

    Args:
      data: the archive.
      newest: the newest version of StableHLO that can be read here.

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


def _members(data: bytes) -> dict[str, bytes]:
    if not data.startswith(b"PK"):
        start = data[:16]
        raise ArtifactError(
            f"these {len(data)} bytes are no artifact: they start with {start!r}",
            fix="give what Exported.serialize() returned",
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found: dict[str, bytes] = {}
            for info in archive.infolist():
                plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & _FLAGGED
                if not plain or info.filename in found:
                    raise zipfile.BadZipFile(f"{info.filename!r} is not stored as it is, once")
                found[info.filename] = archive.read(info)
            return found
    except _DAMAGE as e:
        raise _damaged(e) from None


def _damaged(e: Exception) -> ArtifactError:
    return ArtifactError(f"the artifact is damaged: {str(e) or type(e).__name__}")


def _manifest(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise ArtifactError(
            f"this archive is no artifact: it has no {MANIFEST}",
            fix="give what Exported.serialize() returned",
        )
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ArtifactError(f"the artifact is damaged: {MANIFEST}: {e}") from None
    if not isinstance(manifest, dict):
        raise ArtifactError(f"the artifact is damaged: {MANIFEST} is no object")
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
    """A field of the manifest, which must be there and of its kind."""
    value = of.get(name) if isinstance(of, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) and kind is int:
        raise ArtifactError(
            f"the artifact is damaged: {MANIFEST} has no proper field {name!r}",
        )
    return value


def texts(of: Any, name: str) -> list[str]:
    """A field that is a list of texts."""
    found = field(of, name, list)
    if not all(isinstance(t, str) for t in found):
        raise ArtifactError(
            f"the artifact is damaged: {MANIFEST}: {name!r} are no texts",
        )
    return found


def _check_member(name: str, data: bytes, described: Any, newest: tuple[int, ...]) -> None:
    same = len(data) == field(described, "bytes", int)
    if not same or sha256(data).hexdigest() != field(described, "sha256", str):
        raise ArtifactError(
            f"the artifact is damaged: {name} is not what its checksum says",
        )
    version = stablehlo_version(data)
    if ".".join(map(str, version)) != field(described, "stablehlo", str):
        raise ArtifactError(f"the artifact is damaged: the version of {name}")
    if version > newest:
        raise ArtifactError(
            f"{name} is StableHLO {'.'.join(map(str, version))}, newer than the "
            f"{'.'.join(map(str, newest))} that the jaxlib here reads",
            fix="python -m pip install --upgrade jaxlib",
        )


def stablehlo_version(data: bytes) -> tuple[int, ...]:
    """The version of StableHLO that a portable artifact says it is written in.

    Raises ArtifactError if it says none.
    """
    found = _HEADER.match(data)
    if found is None:
        raise ArtifactError("the artifact is damaged: it holds no portable StableHLO")
    return tuple(map(int, found.groups()))
