"""Artifacts read: `deserialize` and `load`.

Checksums, versions, types and names of calls are verified at once.  A module is parsed, and held
against what is said of it, when it is first needed: most of the time goes there, and who reads a
file may call one function of it, or none.

Invariant: what is used of bytes has been verified: checksums, versions, the calls it makes, and
that its modules take and return what it says.
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
    "deserialize",
    "load",
    "read",
    "read_isolated",
    "read_trusted",
    "verify",
    "with_rules",
    "with_trees",
]


@border
def deserialize(
    blob: bytes | bytearray | memoryview,
    *,
    custom_calls: Iterable[str] = (),
    key: bytes | None = None,
    isolated: bool | Limits = False,
    lose_custom_rules: bool = False,
) -> Exported:
    """What `Exported.serialize` saved.

    Args:
      blob: the bytes.
      custom_calls: functions outside StableHLO that it may call, besides those that every reader
        knows.  They are found by name in this process: allow those of whom you know.
      key: that which it was sealed by; the seal is verified before anything else is looked at.
      isolated: whether another process reads and verifies it first, and writes it anew for this
        one, so that a file which is made to crash its reader, or to keep it busy, costs that
        process only; `Limits` says how long, and how much memory, it may take.
      lose_custom_rules: whether it may be differentiated by what it computes, although the function
        has rules of its own for that (`Exported.custom_rules`), or nothing is said of that.  A
        derivative that was saved with it is used first.

    Nothing in the bytes is run, or unpickled.  Raises ArtifactError, which says what is wrong:
    damage, a newer format or StableHLO, features or types that this reader does not know, custom
    calls, classes that are not registered here, a wrong or missing seal.  That a module with the
    right checksum is not what is said of it is found when it is first used, and raised there; if it
    is `isolated`, and by `check`, at once.

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
    """What is in a file that `Exported.save` wrote, or that `Exported.serialize` was written to.

    Args:
      path: of the file.
      custom_calls, key, isolated, lose_custom_rules: as for `deserialize`.

    The file is mapped into memory: weights, which are read once to verify them, are used where they
    lie by devices that can, and are then as large in memory as the system finds useful.  Do not
    write to the file meanwhile, but replace it by another, as `Exported.save` does.

    Raises ArtifactError as `deserialize` does, and for a file that can not be read.

    >>> import numpy as np, plait, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "twice.plait")
    >>> plait.export.export(lambda x: x * 2)(np.float32(0)).save(path)
    >>> plait.export.load(path).call(np.float32(4)).item()
    8.0
    """
    return _deserialized(files.mapped(path), custom_calls, key, isolated, lose_custom_rules)


def _deserialized(
    blob: bytes | memoryview, custom_calls: Iterable[str], key: Any, isolated: Any, may_go: bool
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
    return with_rules(with_trees(exported, *trees), may_go)


def read_isolated(archive: bytes | memoryview, allowed: set[str], limits: Limits) -> Exported:
    """What an archive holds, read and verified by another process, of flat trees.

    Weights are verified here: they are bytes that nobody interprets.  Raises ArtifactError.
    """
    with expecting("the artifact is damaged"):
        rest, weights = container.without_weights(archive, portable.newest_version)
        arrays = None if weights is None else safetensors.read(weights)
    made = read_apart(rest, "deserialize", allowed, limits)
    return read(made, allowed, {} if arrays is None else arrays)


def with_rules(exported: Exported, may_go: bool) -> Exported:
    """What was read, and its derivatives, of which it is said whether rules may be lost."""
    each: Exported | None = exported
    while each is not None:
        each.rules_may_go = bool(may_go)
        each = each.vjp() if each.has_vjp() else None
    return exported


def with_trees(exported: Exported, in_tree: TreeDef, out_tree: TreeDef) -> Exported:
    """What another process read, which knows no classes, with the trees of this one."""
    exported.in_tree, exported.out_tree = in_tree, out_tree
    exported.paths = paths_of(in_tree)
    return exported


def read(
    archive: bytes | memoryview,
    allowed: set[str],
    arrays: Mapping[str, np.ndarray] | None = None,
    elsewhere: bool = False,
) -> Exported:
    """What an archive holds, verified.

    Args:
      archive: the bytes.
      allowed: functions outside StableHLO that it may call.
      arrays: its weights, if another process was not given them; by default it holds them itself.
      elsewhere: whether its weights are, so that types are all that is known of them.

    Raises ArtifactError, whatever is in it.
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
    """The function of an archive, without its derivatives, whose module nobody has looked at."""
    weights = Read(safetensors.read(members.get(container.WEIGHTS, safetensors.EMPTY)))
    return _function(manifest, members, weights)


def _function(manifest: dict[str, Any], members: dict[str, Any], weights: Read) -> Exported:
    """The function that a manifest describes."""
    if MAIN not in members:
        raise ArtifactError(f"the artifact is damaged: it has no {MAIN}")
    scope = _scope(manifest)
    ins, outs = (_types(manifest, side, scope or NO_SCOPE) for side in ("inputs", "outputs"))
    return Exported(
        field(manifest, "name", str), ins, _tree(manifest, "inputs", ins), outs,
        _tree(manifest, "outputs", outs), texts(manifest, "platforms"), scope, members[MAIN],
        texts(manifest, "custom_calls"), "platform-argument" in manifest["requires"],
        custom_rules=_rules_of(manifest), held=weights.of(manifest),
        division=division.read(manifest, ins, outs),
    )  # fmt: skip


def _derivatives(
    exported: Exported,
    manifest: dict[str, Any],
    members: dict[str, bytes],
    allowed: set[str],
    weights: Read,
) -> None:
    """Give it the derivatives that were saved with it, verified as it is."""
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
    """The last one of a function and some of its derivatives, with the constants that it shares
    with those before it.  Raises ArtifactError for missing ones."""
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
"""What was found good, by digest and what was said of it: to read it again takes no time."""
_KEPT = 256


def verify(exported: Exported, allowed: set[str], reader: str = "deserialize") -> None:
    """Raise ArtifactError if the module is not what is said of it, or calls what is not allowed;
    `reader` is the function by which more can be allowed."""
    _expect_as_said(exported, exported.mlir_module_serialized)
    _expect_allowed(exported, allowed, reader)


def _verify_later(exported: Exported, code: Callable[[], bytes]) -> None:
    """Let the module be this, verified when it is first asked for."""

    def verified(of: Any) -> bytes:  # which it does not hold: nothing would let go of that
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
    """Raise ArtifactError if a module is not what is said of it."""
    ins, outs = exported.weighted(exported.in_avals), exported.out_avals
    said = sorted(exported.custom_calls)
    meshes = () if exported.division is None else exported.division.meshes
    # by text: sizes are of another scope each time
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
