"""Bundles read: artifacts that hold machine code, too, for given sizes and for one machine.

What the compiler made is loaded in milliseconds where nothing that it depends on has changed: the
release of jaxlib, the platform, the processor, the compiler's flags.  Elsewhere the StableHLO is
compiled that lies beside it.  A bundle is an artifact, which `load` reads without its executables.

Invariant: machine code is run only for who said that the file is trusted, and only where everything
it depends on is as it was; else it is compiled, and a warning says why.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import plait
from plait.ext.devices import handler
from plait.ext.errors import ArgumentError, PlaitError, border, warn
from plait.ext.lower import loaded_again
from plait.ext.types import Aval

from . import container, files, portable, sealing, signature
from .artifact import NO_SCOPE, STABLE_CALLS, Exported
from .calling import MachineCode
from .container import field, texts
from .errors import ArtifactError, expecting
from .loading import read_trusted, verify
from .machine_code import CompiledArtifact, machine_here
from .parameters import names_of


@border
def load_compiled(
    path: "str | os.PathLike[str]",
    *,
    trusted: bool = False,
    key: bytes | None = None,
    custom_calls: Sequence[str] = (),
) -> CompiledArtifact:
    """What `CompiledArtifact.save` wrote.

    Args:
      path: of the file.
      trusted: whether who wrote it may run whatever he likes here, as you: executables are machine
        code, and nothing can verify what they do.  Without, the file is not read.
      key: that which it was sealed by.
      custom_calls: as for `deserialize`.

    What was compiled is loaded where jaxlib, the platform, the processor and the compiler's flags
    are those it was made with.  Elsewhere the StableHLO in the file is compiled at the first call,
    and a CacheWarning says what differs.  Loading looks at StableHLO only then.

    Raises ArgumentError without `trusted=True`; ArtifactError for a damaged file, or one that holds
    no executables.

    >>> import numpy as np, plait, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "twice.plait")
    >>> plait.export.export(lambda x: x * 2)(np.float32(0)).compile().save(path)
    >>> plait.export.load_compiled(path, trusted=True).call(np.float32(4)).item()
    8.0
    """
    if trusted is not True:
        raise ArgumentError(
            f"{os.fsdecode(path) if isinstance(path, str | os.PathLike) else path!r} holds machine "
            "code: whoever wrote it can do here whatever you can, and nothing can verify that it "
            "does not",
            fix="if you wrote it, or know who did: load_compiled(path, trusted=True); if not: "
            "load(path, isolated=True) reads the StableHLO in it and none of its machine code",
        )
    archive = sealing.unsealed(files.mapped(path), key)
    with expecting("the artifact is damaged"):
        # any StableHLO: nobody looks at it here, and to ask for the newest one takes 50 ms
        manifest, members = container.unpack(archive, (math.inf,))
        if "executables" not in manifest:
            raise ArtifactError(
                f"{os.fsdecode(path)} is an artifact without executables",
                fix="read it by plait.export.load(path), or compile it: "
                "plait.export.load(path).compile(...).save(path)",
            )
        said = field(manifest, "executables", dict)
        exported = read_trusted(manifest, members)
        scope = exported.scope or NO_SCOPE
        made = {}
        for each in field(said, "each", list):
            ins = tuple([signature.read(t, scope) for t in texts(each, "inputs")])
            made[ins] = members.get(field(each, "member", str))
            if made[ins] is None:
                raise ArtifactError("the artifact is damaged: an executable is missing")
        there = field(said, "made_where", dict)
    _load(exported, made, there)
    if len(exported.compiled) != len(made):
        with expecting("the artifact is damaged"):
            container.unpack(archive, portable.newest_version)
            verify(exported, {*STABLE_CALLS, *names_of(custom_calls, "custom_calls")})
    return CompiledArtifact(exported, made)


def _load(
    exported: Exported, made: Mapping[tuple[Aval, ...], bytes], there: dict[str, Any]
) -> None:
    """Give a function its executables, or let it compile them when it is called."""
    here = machine_here()
    differing = [name for name in here if there.get(name) != here[name]]
    try:
        if differing:
            raise PlaitError(f"it was made with {_differences(differing, there, here)}")
        for ins, data in made.items():
            if exported.division is not None:
                exported.load_made(ins, MachineCode(bytes(data), exported.custom_calls))
                continue
            outs = exported.result_types(ins)
            run = loaded_again(bytes(data), exported.custom_calls).executable.execute_sharded
            exported.compiled[ins] = run, [handler(a) for a in outs], outs
    except PlaitError as e:
        exported.compiled.clear()
        exported.made.clear()
        warn(
            f"the executables of {exported.fun_name} can not be used ({e.what}): its StableHLO is "
            "compiled when it is called",
            plait.errors.CacheWarning,
        )


def _differences(names: Sequence[str], there: dict[str, Any], here: dict[str, str]) -> str:
    return ", ".join([
        f"another {name}" if here[name].startswith("sha256") or name == "machine"
        else f"{name} {there.get(name)}, and here is {here[name]}"
        for name in names
    ])  # fmt: skip
