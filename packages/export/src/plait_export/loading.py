"""Reader of artifacts: `deserialize` and `load`.

Checksums, versions, types and names of calls are verified at once.  A module is parsed, and checked
against the manifest, at its first use.  That takes most of the time, and a caller may use only one
module of a file, or none.

Invariant: every module that is used has been verified: its checksum, its version, the functions
that it calls, and the types of its arguments and results.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from plait.ext.errors import PlaitError, border
from plait.ext.lower import lock
from plait.ext.sizes import Scope
from plait.ext.tree import TreeDef, flatten
from plait.ext.types import Aval

from . import container, division, files, portable, safetensors, sealing, signature, structure
from .artifact import (
    MAIN,
    NO_SCOPE,
    STABLE_CALLS,
    Exported,
    member_of,
    paths_of,
    pullback_name,
    pullback_types,
)
from .constants import Constants
from .container import field, texts
from .errors import ArtifactError, expecting
from .isolation import Limits, limits_of, read_apart
from .library_calls import check_library_calls
from .parameters import flag_of, names_of
from .weights import Read

__all__ = [
    "deserialize", "load", "read", "read_isolated", "read_trusted", "verify", "with_rules",
    "with_trees",
]  # fmt: skip


@border
def deserialize(
    blob: bytes | bytearray | memoryview,
    *,
    custom_calls: Iterable[str] = (),
    key: bytes | None = None,
    isolated: bool | Limits = False,
    lose_custom_rules: bool = False,
) -> Exported:
    """Read the bytes that `Exported.serialize` returned.

    Args:
      blob: the bytes.
      custom_calls: functions outside StableHLO that it may call, besides those that every reader
        supports.  They are looked up by name in this process: allow only functions that you know.
      key: the key that it was sealed with; the seal is verified before anything else is read.
      isolated: whether another process reads and verifies it first, and writes it anew for this
        one.  A file that is crafted to crash or stall its reader then harms that process only.
        `Limits` bounds its time and memory.
      lose_custom_rules: whether the function may be differentiated through its operations even if
        it has, or may have, its own rules for that (`Exported.custom_rules`).  A derivative that
        was saved with it takes precedence.

    Nothing in the bytes is run or unpickled.  Raises ArtifactError, which names the problem:
    damage, a newer format or StableHLO, unknown features or types, custom calls, classes that are
    not registered here, a wrong or missing seal.  A module that has the right checksum but does not
    match the manifest raises at its first use; `isolated` and `check` find it at once.

    >>> import numpy as np, plait
    >>> key = b"of sixteen bytes"
    >>> saved = plait.export.export(lambda x: x + 1)(np.float32(0)).serialize(key=key)
    >>> plait.export.deserialize(saved, key=key).call(np.float32(2)).item()
    3.0
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ArtifactError(
            f"an artifact is bytes, not {type(blob).__name__}",
            fix='read the file with open(path, "rb").read(), or with plait.export.load(path)',
        )
    return _deserialized(bytes(blob), custom_calls, key, isolated, lose_custom_rules)


@border
def load(
    path: "str | os.PathLike[str]",
    *,
    custom_calls: Iterable[str] = (),
    key: bytes | None = None,
    isolated: bool | Limits = False,
    lose_custom_rules: bool = False,
) -> Exported:
    """Read a file written by `Exported.save`, or holding the bytes of `Exported.serialize`.

    Args:
      path: path of the file.
      custom_calls, key, isolated, lose_custom_rules: as for `deserialize`.

    The file is mapped into memory.  Weights are read once to verify them.  Devices that can use the
    mapped memory do so without a copy, and the system decides how much of it stays in memory.  Do
    not modify the file while it is in use; replace it by another, as `Exported.save` does.

    Raises ArtifactError as `deserialize` does, and for a file that cannot be read.

    >>> import numpy as np, plait, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "twice.plait")
    >>> plait.export.export(lambda x: x * 2)(np.float32(0)).save(path)
    >>> plait.export.load(path).call(np.float32(4)).item()
    8.0
    """
    return _deserialized(files.mapped(path), custom_calls, key, isolated, lose_custom_rules)


def _deserialized(
    blob: bytes | memoryview,
    custom_calls: Iterable[str],
    key: bytes | None,
    isolated: Any,
    may_go: bool,
) -> Exported:
    allowed, limits = {*STABLE_CALLS, *names_of(custom_calls, "custom_calls")}, limits_of(isolated)
    may_go = flag_of(may_go, "lose_custom_rules")
    archive = sealing.unsealed(blob, key)
    if limits is None:
        return with_rules(read(archive, allowed), may_go)
    exported = read_isolated(archive, allowed, limits)
    with expecting("the artifact is damaged"):
        manifest, _ = container.unpack(archive, portable.newest_version)
        trees = [_tree(manifest, side, avals) for side, avals in
                 (("inputs", exported.in_avals), ("outputs", exported.out_avals))]  # fmt: skip
    exported.parameters = _parameters(manifest)
    return with_rules(with_trees(exported, *trees), may_go)


def read_isolated(archive: bytes | memoryview, allowed: set[str], limits: Limits) -> Exported:
    """Read and verify an archive in another process; return the function with flat trees.

    This process verifies the weights, which are plain array data.  Raises ArtifactError.
    """
    with expecting("the artifact is damaged"):
        rest, weights = container.without_weights(archive, portable.newest_version)
        arrays = None if weights is None else safetensors.read(weights)
    made = read_apart(rest, "deserialize", allowed, limits)
    return read(made, allowed, {} if arrays is None else arrays)


def with_rules(exported: Exported, may_go: bool) -> Exported:
    """Set whether a function and its derivatives may lose custom rules; return the function."""
    each: Exported | None = exported
    while each is not None:
        each.rules_may_go = bool(may_go)
        each = each.vjp() if each.has_vjp() else None
    return exported


def with_trees(exported: Exported, in_tree: TreeDef, out_tree: TreeDef) -> Exported:
    """Set the trees of a function that another process read without the users' classes."""
    exported.in_tree, exported.out_tree = in_tree, out_tree
    exported.paths = paths_of(in_tree)
    return exported


def read(
    archive: bytes | memoryview,
    allowed: set[str],
    arrays: Mapping[str, np.ndarray[Any, Any]] | None = None,
    elsewhere: bool = False,
) -> Exported:
    """Read and verify the function in an archive.

    Args:
      archive: the bytes.
      allowed: functions outside StableHLO that it may call.
      arrays: its weights, if they are not in the archive; by default they are.
      elsewhere: whether another process holds the weights, so that only their types are known.

    Raises only ArtifactError, whatever the bytes are.
    """
    with expecting("the artifact is damaged"):
        return _read(archive, allowed, arrays, elsewhere)


def _read(
    archive: bytes | memoryview,
    allowed: set[str],
    arrays: Mapping[str, np.ndarray] | None,
    elsewhere: bool,
) -> Exported:
    manifest, members = container.unpack(archive, portable.newest_version)
    if arrays is None and container.WEIGHTS in members:
        arrays = safetensors.read(members[container.WEIGHTS])
    weights = Read(arrays if arrays is not None or elsewhere else {})
    exported = _function(manifest, members, weights)
    _expect_allowed(exported, allowed, "deserialize")
    _verify_later(exported, partial(bytes, members[MAIN]))
    _derivatives(exported, manifest, members, allowed, weights)
    weights.expect_all_used()
    return exported


def read_trusted(manifest: dict[str, Any], members: dict[str, Any]) -> Exported:
    """Return the function of an archive, without derivatives; its module is not verified."""
    weights = Read(safetensors.read(members.get(container.WEIGHTS, safetensors.EMPTY)))
    return _function(manifest, members, weights)


def _function(manifest: dict[str, Any], members: dict[str, Any], weights: Read) -> Exported:
    """Return the function that a manifest describes, without its derivatives."""
    if MAIN not in members:
        raise ArtifactError(f"the artifact is damaged: it has no {MAIN}")
    scope = _scope(manifest)
    ins, outs = (_types(manifest, side, scope or NO_SCOPE) for side in ("inputs", "outputs"))
    return Exported(
        field(manifest, "name", str), ins, _tree(manifest, "inputs", ins), outs,
        _tree(manifest, "outputs", outs), texts(manifest, "platforms"), scope, members[MAIN],
        texts(manifest, "custom_calls"), "platform-argument" in manifest["requires"],
        custom_rules=_rules_of(manifest), held=weights.of(manifest),
        division=division.read(manifest, ins, outs), parameters=_parameters(manifest),
    )  # fmt: skip


def _parameters(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters; files of earlier releases lack them."""
    return tuple(texts(manifest, "parameters")) if "parameters" in manifest else ()


def _derivatives(
    exported: Exported,
    manifest: dict[str, Any],
    members: dict[str, bytes],
    allowed: set[str],
    weights: Read,
) -> None:
    """Attach the saved derivatives to a function; each is verified at its first use."""
    saved = field(manifest, "vjp", list) if "vjp" in manifest else []
    modules = [members.get(member_of(k), b"") for k in range(len(saved) + 1)]
    for k, said in enumerate(saved, 1):
        if member_of(k) not in members:
            raise ArtifactError(f"the artifact is damaged: it has no {member_of(k)}")
        ins, outs = pullback_types(exported.in_avals, exported.out_avals)
        args, results = (0,) * len(ins), (0,) * len(outs)
        derivative = Exported(
            pullback_name(exported.fun_name), ins, flatten((args, {}))[1], outs,
            flatten(results)[1], exported.platforms, exported.scope,
            b"", texts(said, "custom_calls"),
            exported.by_argument, linear_from=len(exported.in_avals),
            custom_rules=_rules_of(said), held=weights.of(said),
            division=division.read(said, ins, outs),
        )  # fmt: skip
        _expect_allowed(derivative, allowed, "deserialize")
        _verify_later(derivative, partial(_completed, modules[: k + 1]))
        exported._derive = lambda held=derivative: held
        exported = derivative


def _completed(modules: Sequence[bytes]) -> bytes:
    """Return the last module of a list with the constants that it shares with those before it.

    Raises ArtifactError for missing constants.
    """
    constants, found = Constants(), b""
    for module in modules:
        found = constants.filled(module)
    return found


def _scope(manifest: dict[str, Any]) -> Scope | None:
    sizes = manifest.get("sizes")
    if sizes is None:
        return None
    constraints, least = texts(sizes, "constraints"), field(sizes, "least", int)
    try:
        return Scope(constraints, lower=least)
    except PlaitError as e:
        raise ArtifactError(f"the artifact is damaged: its constraints: {e.what}") from None


def _types(manifest: dict[str, Any], side: str, scope: Scope) -> list[Aval]:
    return [signature.read(t, scope) for t in field(field(manifest, side, dict), "types", list)]


def _tree(manifest: dict[str, Any], side: str, avals: Iterable[Aval]) -> TreeDef:
    tree, count = structure.read(field(manifest, side, dict).get("tree")), len([*avals])
    if tree.num_leaves != count:
        raise ArtifactError(
            f"the artifact is damaged: {count} {side} in a tree of {tree.num_leaves} leaves"
        )
    return tree


_verified: "OrderedDict[Any, None]" = OrderedDict()
"""Modules found valid, by digest and declared signature, so that they are not verified again."""
_KEPT = 256


def verify(exported: Exported, allowed: set[str], reader: str = "deserialize") -> None:
    """Raise ArtifactError if the module does not match its declaration or makes other calls.

    The message names `reader`, the function that can allow more calls.
    """
    _expect_as_said(exported, exported.mlir_module_serialized)
    _expect_allowed(exported, allowed, reader)


def _verify_later(exported: Exported, code: Callable[[], bytes]) -> None:
    """Set the module of a function to the result of `code`, verified at the first access."""

    def verified(of: Any) -> bytes:  # `exported` is passed in: a closure would be a cycle with it
        with expecting("the artifact is damaged"):
            found = code()
            _expect_as_said(of, found)
        return found

    exported._portable = verified


def _expect_allowed(exported: Exported, allowed: set[str], reader: str) -> None:
    unknown = sorted({*exported.custom_calls} - allowed)
    if unknown:
        raise ArtifactError(
            f"{exported.fun_name} calls functions outside StableHLO: {', '.join(unknown)}",
            fix=f"if you trust it: plait.export.{reader}(blob, custom_calls={unknown})",
        )


def _expect_as_said(exported: Exported, code: bytes) -> None:
    """Raise ArtifactError if a module does not match the declared types, calls and meshes."""
    ins, outs = exported.weighted(exported.in_avals), exported.out_avals
    said = sorted(exported.custom_calls)
    meshes = () if exported.division is None else exported.division.meshes
    # Types are compared as text, since each reading makes a new scope for the sizes.
    key = (sha256(code).digest(), repr(ins), repr(outs), (*said,), exported.by_argument, meshes)
    if key not in _verified:
        _verify_module(exported, code, ins, said, meshes)
        _verified[key] = None
        while len(_verified) > _KEPT:
            _verified.popitem(last=False)


def _verify_module(
    exported: Exported,
    code: bytes,
    ins: Sequence[Aval],
    said: list[str],
    meshes: Sequence[division.Axes],
) -> None:
    with lock:
        module = portable.parsed(code)
        calls, endless = portable.calls_in(module)
        check_library_calls(calls)
        fits = portable.is_for(module, ins, exported.out_avals, exported.by_argument)
        fits = fits and not endless and portable.targets(calls) == said
        if exported.division is not None:
            fits = fits and {*division.meshes_in(module)} <= {*meshes}
    if not fits:
        raise ArtifactError(
            f"the artifact is damaged: its module is not the {exported.fun_name} it describes"
        )


def _rules_of(described: dict[str, Any]) -> list[str] | None:
    return texts(described, "custom_rules") if "custom_rules" in described else None
