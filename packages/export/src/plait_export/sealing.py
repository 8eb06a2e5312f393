"""Seals: whether an artifact is as one who knows a key wrote it.

    line of 17 bytes    what it is, and how it is sealed
    32 bytes            HMAC-SHA256 (RFC 2104) of the line and what follows
    the archive         as `container` has it

A reader compares the seal before anything of the archive is looked at.  What is sealed can be read
by everybody; only who has the key can write it.

Invariant: with a key, only bytes that were sealed by it leave `unsealed`.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import IO, Any

from plait.ext.errors import ArgumentError

from . import container, files
from .errors import AGAIN, ArtifactError

LINE = b"plait sealed 1 \r\n"
"""With a carriage return: who changes the ends of lines breaks it at once."""

_SHORTEST = 16
_LENGTH = sha256().digest_size
_PIECE = 1 << 20
BEFORE = len(LINE) + _LENGTH
"""Bytes before the archive."""


def seal(data: bytes, key: Any) -> bytes:
    """The bytes of an artifact, sealed.  Raises ArgumentError for what is no key."""
    return LINE + _seal_of(data, _checked(key)) + data


def write_sealed(file: IO[bytes], fill: Callable[[IO[bytes]], None], key: Any) -> None:
    """Write an artifact by `fill(file)`, and the seal of it before it.  The file is a new one.

    Raises ArgumentError for what is no key.
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
    path: Any, manifest: dict[str, Any], members: dict[str, container.Member], key: Any
) -> None:
    """Write a file that is there wholly or not at all, sealed if there is a key."""
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
    """Whether bytes say that they are sealed."""
    return bytes(blob[: len(LINE)]) == LINE


def unsealed(blob: bytes | memoryview, key: Any) -> bytes | memoryview:
    """The bytes of the artifact that was sealed by the key; of one that is not, without a key.

    Raises ArtifactError for a seal of another key, for none, and for one without a key.
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


def _checked(key: Any) -> bytes:
    there = isinstance(key, bytes | bytearray | memoryview)
    if not there or len(bytes(key)) < _SHORTEST:
        raise ArgumentError(
            f"a key is at least {_SHORTEST} bytes that nobody can guess, not a "
            f"{type(key).__name__}{f' of {len(bytes(key))}' if there else ''}",
            fix="make one with secrets.token_bytes(32), and keep it where files are not",
        )
    return bytes(key)
