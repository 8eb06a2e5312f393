"""Seals, which prove that the holder of a key wrote an artifact and that it is unchanged.

    line of 17 bytes    identifies the format of the seal
    32 bytes            HMAC-SHA256 (RFC 2104) of the line and the archive
    the archive         in the format of `container`

A reader compares the seal before it parses any of the archive.  A sealed artifact is readable
without the key, but only a holder of the key can write one.

Invariant: with a key, `unsealed` returns only bytes that were sealed with it.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import IO, Any

from plait.ext.errors import ArgumentError

from . import container, files
from .errors import AGAIN, ArtifactError

LINE = b"plait sealed 1 \r\n"
"""Includes a carriage return, so that a conversion of line ends is detected at once."""

_SHORTEST = 16
_LENGTH = sha256().digest_size
_PIECE = 1 << 20
BEFORE = len(LINE) + _LENGTH
"""The number of bytes before the archive."""


def seal(data: bytes, key: object) -> bytes:
    """Return the bytes of an artifact with a seal.  Raises ArgumentError for an invalid key."""
    return LINE + _seal_of(data, _checked(key)) + data


def write_sealed(file: IO[bytes], fill: Callable[[IO[bytes]], None], key: Any) -> None:
    """Write an artifact with `fill(file)` to a new file, and its seal in front.

    Raises ArgumentError for an invalid key.
    """
    key = _checked(key)
    file.write(LINE + bytes(_LENGTH))
    fill(file)
    file.flush()
    written = hmac.new(key, LINE, "sha256")
    file.seek(BEFORE)
    while piece := file.read(_PIECE):
        written.update(piece)
    file.seek(len(LINE))
    file.write(written.digest())


def write_file(
    path: object, manifest: dict[str, Any], members: dict[str, container.Member], key: bytes | None
) -> None:
    """Write an artifact file atomically, sealed if a key is given."""
    before = 0 if key is None else BEFORE

    def fill(file: IO[bytes]) -> None:
        container.write(file, manifest, members, before)

    def sealed(file: IO[bytes]) -> None:
        write_sealed(file, fill, key)

    files.write(path, fill if key is None else sealed)


def _seal_of(data: bytes | memoryview, key: bytes) -> bytes:
    made = hmac.new(key, LINE, "sha256")
    made.update(data)
    return made.digest()


def is_sealed(blob: bytes | memoryview) -> bool:
    """Return whether bytes begin with the line of a sealed artifact."""
    return bytes(blob[: len(LINE)]) == LINE


def unsealed(blob: bytes | memoryview, key: bytes | None) -> bytes | memoryview:
    """Verify the seal and return the artifact; without a key, return an unsealed artifact.

    Raises ArtifactError if the seal is by another key, or is missing although a key is given.  Also
    raises it if the artifact is sealed and no key is given.
    """
    if key is None:
        if is_sealed(blob):
            raise ArtifactError(
                "the artifact is sealed, and no key is given by which its seal is verified",
                fix="give the key that it was saved with: plait.export.deserialize(blob, key=key)",
            )
        return blob
    key = _checked(key)
    if not is_sealed(blob):
        raise ArtifactError(
            "a key is given, and the artifact has no seal: anybody may have written it",
            fix="save it with Exported.serialize(key=key), or read it without a key",
        )
    given, data = bytes(blob[len(LINE) : BEFORE]), blob[BEFORE:]
    if not hmac.compare_digest(given, _seal_of(data, key)):
        raise ArtifactError(
            "the seal of the artifact is not by this key: it was changed, or sealed by another",
            fix=f"give the key that it was saved with; if this is it: {AGAIN}",
        )
    return data


def _checked(key: object) -> bytes:
    there = isinstance(key, bytes | bytearray | memoryview)
    if not there or len(bytes(key)) < _SHORTEST:
        raise ArgumentError(
            f"a key is at least {_SHORTEST} bytes that nobody can guess, not a "
            f"{type(key).__name__}{f' of {len(bytes(key))}' if there else ''}",
            fix="make one with secrets.token_bytes(32), and keep it where files are not",
        )
    return bytes(key)
