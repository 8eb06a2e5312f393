"""Artifacts opened without the user's classes: their arguments are flat and named.

Invariant: an opened artifact was first read by another process; arrays are read from files without
executing anything in them.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext.errors import ArgumentError
from plait.ext.types import Aval
from plait.typing import ArrayLike

from . import container, portable, sealing
from .artifact import STABLE_CALLS, Exported
from .container import field
from .errors import expecting
from .facts import Facts, facts_of
from .isolation import Limits
from .loading import read_isolated


class Opened(NamedTuple):
    """An artifact with names for its arguments and results.

    Attributes:
      flat: the function of its flat arguments.
      facts: facts about the artifact.
      manifest: the manifest in its file.
      arguments, results: names of the flat arguments and results: args[0]['w'], scale, result[1].
    """

    flat: Exported
    facts: Facts
    manifest: dict[str, Any]
    arguments: tuple[str, ...]
    results: tuple[str, ...]

    def call(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the results by name, for arguments by name, or by number as `arr_0`.

        Raises ArgumentError for missing or unknown names, and what a call raises.
        """
        numbered = [f"arr_{i}" for i in range(len(self.arguments))]
        names = numbered if arrays.keys() == {*numbered} and numbered else self.arguments
        if arrays.keys() != {*names}:
            raise ArgumentError(
                f"{self.flat.fun_name} takes {_listed(self.arguments)}, and is given "
                f"{_listed(sorted(arrays))}",
                fix="give each argument under its name, or all by number: arr_0, arr_1, ...",
            )
        given = [_as_wanted(arrays[n], a) for n, a in zip(names, self.flat.in_avals, strict=True)]
        found = self.flat.call(*given)
        return {n: np.asarray(y) for n, y in zip(self.results, found, strict=True)}

    def with_trees(
        self, manifest: dict[str, Any], members: dict[str, container.Member]
    ) -> tuple[dict[str, Any], dict[str, container.Member]]:
        """Return the manifest and members of a derived function with the trees of this one."""
        trees = {side: {**manifest[side], "tree": self.manifest[side]["tree"]}
                 for side in ("inputs", "outputs")}  # fmt: skip
        named = "registered-nodes" in self.manifest["requires"]
        requires = [*manifest["requires"], *(["registered-nodes"] if named else [])]
        return {**manifest, **trees, "requires": requires}, members


def open_artifact(
    blob: bytes | memoryview, custom_calls: Iterable[str], key: bytes | None, limits: Limits
) -> Opened:
    """Open the artifact in some bytes.  Raises ArtifactError if they do not hold one."""
    archive = sealing.unsealed(blob, key)
    allowed = {*STABLE_CALLS, *custom_calls}
    flat = read_isolated(archive, allowed, limits)
    facts = facts_of(archive, len(blob), key is not None)
    with expecting("the artifact is damaged"):
        manifest, _ = container.unpack(archive, portable.newest_version)
        taken, returned = (field(manifest, side, dict)["tree"] for side in ("inputs", "outputs"))
        arguments, results = tuple(_arguments(taken)), tuple(_leaves(returned, "result"))
    return Opened(flat, facts, manifest, arguments, results)


def _arguments(tree: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the leaves of (args, kwargs)."""
    args, kwargs = tree["tuple"]
    yield from _leaves(args, "args")
    for name, each in kwargs["dict"]:
        yield from _leaves(each, str(name))


def _leaves(tree: Any, path: str) -> Iterator[str]:
    """Yield the path of each leaf, in order."""
    if tree == "*":
        yield path
    elif tree is not None and "node" in tree:
        for i, each in enumerate(tree["children"]):
            yield from _leaves(each, f"{path}.{i}")
    elif tree is not None:
        ((kind, inside),) = tree.items()
        named = kind in ("dict", "ordered")
        for key, each in inside if named else enumerate(inside):
            yield from _leaves(each, f"{path}[{key!r}]")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


# ---- arrays in files -----------------------------------------------------------------------


def _as_wanted(x: ArrayLike, aval: Aval) -> Any:
    """Convert a value from a file to an array.

    Elements of a dtype that numpy's files cannot name are viewed as the argument's dtype; lists
    become arrays of that dtype.
    """
    if isinstance(x, np.ndarray) and x.dtype.kind != "V":
        return x
    try:
        if isinstance(x, np.ndarray):
            return x.view(aval.dtype)
        return np.asarray(x, aval.dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise ArgumentError(
            f"of what is given no {aval!r} can be made: {e}",
            fix="give arrays of the types that `inspect` shows",
        ) from None


def arrays_of(data: bytes, most: int | None = None) -> dict[str, Any]:
    """Return the arrays of a file that `numpy.savez` wrote.

    Args:
      data: the bytes of the file.
      most: the number of bytes that the arrays may have together.

    Raises ArgumentError for data that is not such a file, holds objects, or exceeds `most`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if most is not None and size > most:
            raise ArgumentError(f"arrays of {size} bytes, and {most} are allowed", fix=_SMALLER)
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError, NotImplementedError) as e:
        raise ArgumentError(
            f"these {len(data)} bytes are not arrays in numpy's npz format: {e}",
            fix="write them with numpy.savez, without objects",
        ) from None


_SMALLER = "give less at a time, or allow more with --largest"


def file_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the arrays as a file in numpy's npz format."""
    out = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(out, **named)
    return out.getvalue()


def values_of(text: bytes) -> dict[str, Any]:
    """Return the members of a JSON object.  Raises ArgumentError for text that is not one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise ArgumentError(f"this is no JSON: {e}", fix=_OBJECT) from None
    if not isinstance(found, dict):
        raise ArgumentError("this JSON is not an object", fix=_OBJECT)
    return found


_OBJECT = 'give an object of numbers and lists: {"args[0]": [[1, 2], [3, 4]]}'


def text_of(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as a JSON object of numbers and lists.

    Raises ArgumentError for complex numbers.
    """
    if any(a.dtype.kind == "c" for a in arrays.values()):
        raise ArgumentError("JSON has no complex numbers", fix="ask for arrays in numpy's npz")
    return json.dumps({name: a.tolist() for name, a in arrays.items()}).encode()
