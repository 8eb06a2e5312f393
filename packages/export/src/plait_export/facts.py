"""What can be said of a file without using it.

Invariant: the file is read in a process of its own only; here its manifest is looked at, which is
text.
"""

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from plait.ext.errors import border

from . import container, files, portable, sealing
from .artifact import STABLE_CALLS
from .container import field, texts
from .errors import ArtifactError, expecting
from .isolation import Limits, limits_of
from .loading import read_isolated
from .parameters import names_of


class Facts(NamedTuple):
    """What an artifact is, as its manifest says and its modules confirm.

    Attributes:
      name: of the function.
      inputs, outputs: types of the flat arguments and results.
      constraints: of its symbolic sizes; `least` is what a size is at least.
      platforms: what it was lowered for.
      custom_calls: functions outside StableHLO that it calls, those of its derivatives too.
      vjp_order: how many derivatives in reverse mode it holds.
      classes: names of the registered classes in its trees; a reader must have registered them.
      format: the version of the format of the file.
      producer: what wrote it, as it says.
      stablehlo: for each module in it the version of StableHLO.
      sealed: whether the seal was verified.
      size: bytes.
      custom_rules: rules for derivatives and for mapping that its module does not hold; None if
        nothing is said of that.
      weights: types of the arrays beside the modules, by name.
      nr_devices: how many devices it runs on.
      executables: types of arguments for which it holds machine code, which nobody has verified.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constraints: tuple[str, ...]
    least: int
    platforms: tuple[str, ...]
    custom_calls: tuple[str, ...]
    vjp_order: int
    classes: tuple[str, ...]
    format: int
    producer: str
    stablehlo: dict[str, str]
    sealed: bool
    size: int
    custom_rules: tuple[str, ...] | None = None
    weights: dict[str, str] = {}
    nr_devices: int = 1
    executables: tuple[str, ...] = ()


@border
def check(
    source: "str | os.PathLike[str] | bytes | bytearray | memoryview",
    *,
    custom_calls: Iterable[str] = (),
    key: bytes | None = None,
    limits: Limits | None = None,
) -> Facts:
    """The facts of an artifact, if it is whole; else an error that says what is wrong with it.

    It is read and verified in another process, as by `deserialize(..., isolated=True)`; the classes
    in its trees need not be registered.

    Args:
      source: a path, or the bytes of an artifact.
      custom_calls, key: as for `deserialize`.
      limits: of the process; by default those of `Limits()`.

    Raises ArtifactError, and ArgumentError for a file that can not be opened.

    >>> import numpy as np, plait
    >>> types = plait.export.symbolic_args_specs(np.ones((2, 3), np.float32), "b, 3")
    >>> saved = plait.export.export(lambda x: x.sum(0))(types).serialize()
    >>> plait.export.check(saved).inputs
    ('f32[b,3]',)
    """
    blob = bytes_of(source)
    archive = sealing.unsealed(blob, key)
    held = Limits() if limits is None else limits_of(limits)
    assert held is not None
    read_isolated(archive, {*STABLE_CALLS, *names_of(custom_calls, "custom_calls")}, held)
    return facts_of(archive, len(blob), key is not None)


def bytes_of(source: Any) -> bytes | memoryview:
    """The bytes of a file, mapped, or those that are given.

    Raises ArtifactError if it can not be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if not isinstance(source, str | os.PathLike):
        raise ArtifactError(
            f"an artifact is a path or bytes, not {type(source).__name__}",
            fix="give what Exported.serialize() returned, or the name of the file it is in",
        )
    return files.mapped(source)


def facts_of(archive: bytes | memoryview, size: int, sealed: bool) -> Facts:
    """What the manifest of an archive says, that was verified.  Raises ArtifactError."""
    with expecting("the artifact is damaged"):
        manifest, _ = container.unpack(archive, portable.newest_version)
        sides = [field(manifest, side, dict) for side in ("inputs", "outputs")]
        derivatives = field(manifest, "vjp", list) if "vjp" in manifest else []
        sizes = manifest.get("sizes") or {"constraints": [], "least": 1}
        calls = [texts(each, "custom_calls") for each in (manifest, *derivatives)]
        named: set[str] = set()
        for side in sides:
            _names(side.get("tree"), named)
        return Facts(
            name=field(manifest, "name", str),
            inputs=tuple(texts(sides[0], "types")),
            outputs=tuple(texts(sides[1], "types")),
            constraints=tuple(texts(sizes, "constraints")),
            least=field(sizes, "least", int),
            platforms=tuple(texts(manifest, "platforms")),
            custom_calls=tuple(sorted({name for names in calls for name in names})),
            vjp_order=len(derivatives),
            classes=tuple(sorted(named)),
            format=field(manifest, "format", int),
            producer=str(manifest.get("producer", "")),
            stablehlo={
                name: field(of, "stablehlo", str)
                for name, of in field(manifest, "members", dict).items()
                if not container.is_raw(name)
            },
            sealed=sealed,
            size=size,
            custom_rules=tuple(texts(manifest, "custom_rules"))
            if "custom_rules" in manifest
            else None,
            weights={
                field(w, "name", str): field(w, "type", str)
                for each in (manifest, *derivatives)
                for w in (field(each, "weights", list) if "weights" in each else [])
            },
            nr_devices=field(manifest["devices"], "count", int) if "devices" in manifest else 1,
            executables=tuple(
                ", ".join(texts(each, "inputs"))
                for each in field(manifest["executables"], "each", list)
            )
            if "executables" in manifest
            else (),
        )


def _names(tree: Any, found: set[str]) -> None:
    """The names of classes in a tree; it was read already, and is not too deep."""
    if isinstance(tree, dict):
        if isinstance(tree.get("node"), str):
            found.add(tree["node"])
        for each in tree.values():
            _names(each, found)
    elif isinstance(tree, list):
        for each in tree:
            _names(each, found)
