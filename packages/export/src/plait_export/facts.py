"""Description of an artifact without using it.

Invariant: modules are read in a separate process only; this process reads the manifest, which is
text.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from plait.ext.errors import border

from . import container, files, portable, sealing
from .artifact import STABLE_CALLS
from .container import field, texts
from .errors import ArtifactError, expecting
from .isolation import Limits, limits_of
from .loading import read_isolated
from .parameters import names_of


class Facts(NamedTuple):
    """A description of an artifact, from its manifest, confirmed by its modules.

    Attributes:
      name: name of the function.
      inputs, outputs: types of the flat arguments and results.
      constraints: constraints on its symbolic sizes.
      least: the lower bound of symbolic sizes whose bound no constraint gives.
      platforms: platforms that it was lowered for.
      custom_calls: functions outside StableHLO that it or its derivatives call.
      vjp_order: the number of reverse-mode derivatives that it holds.
      classes: names of the registered classes in its trees; a reader must have registered them.
      format: the version of the file format.
      producer: the program that wrote it, according to the manifest.
      stablehlo: the version of StableHLO of each module.
      sealed: whether a seal was verified.
      size: size of the file in bytes.
      custom_rules: rules for derivatives and for mapping that its module does not hold; None if
        unknown.
      weights: types of the arrays beside the modules, by name.
      nr_devices: the number of devices that it runs on.
      executables: types of arguments for which it holds machine code, which is not verified.
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
    """Verify an artifact and return a description of it.

    Another process reads it, as for `deserialize(..., isolated=True)`.  The classes in its trees
    need not be registered.

    Args:
      source: a path, or the bytes of an artifact.
      custom_calls, key: as for `deserialize`.
      limits: limits of the process; by default `Limits()`.

    Raises ArtifactError, which names the damage, also for a file that cannot be opened;
    ArgumentError for wrong arguments.

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


def bytes_of(source: object) -> bytes | memoryview:
    """Return the bytes of a file, which is mapped into memory, or the bytes that are given.

    Raises ArtifactError if the file cannot be read.
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
    """Return the description in the manifest of a verified archive, or raise ArtifactError."""
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


def _names(tree: object, found: set[str]) -> None:
    """Add the names of classes in a tree to `found`; the depth of the tree was checked before."""
    if isinstance(tree, dict):
        if isinstance(tree.get("node"), str):
            found.add(tree["node"])
        for each in tree.values():
            _names(each, found)
    elif isinstance(tree, list):
        for each in tree:
            _names(each, found)
