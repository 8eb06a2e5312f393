"""Reader of bundles: artifacts that also hold machine code, for given sizes and one machine.

Machine code loads in milliseconds if nothing that it depends on has changed: the release of jaxlib,
the platform, the processor, the compiler's flags.  Otherwise the StableHLO in the same file is
compiled.  A bundle is an artifact; `load` reads it without its executables.

Invariant: machine code runs only if the caller declares the file trusted, and only if everything it
depends on is unchanged; otherwise the StableHLO is compiled, and a warning gives the reason.
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
    """Read a file that `CompiledArtifact.save` wrote.

    Args:
      path: path of the file.
      trusted: whether the author of the file may run arbitrary code here with your rights.
        Executables are machine code, whose effects cannot be verified.  The file is read only if
        this is True.
      key: the key that the file was sealed with.
      custom_calls: as for `deserialize`.

    The executables are loaded if jaxlib, the platform, the processor and the compiler's flags are
    those they were made with.  Otherwise a CacheWarning names the differences, and the StableHLO in
    the file is verified now and compiled at the first call.

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
        # Accept any version of StableHLO: the modules may never be needed, and finding the newest
        # version that jaxlib reads takes 50 ms.
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
    """Load the executables of a function; if they do not fit this machine, warn and load none."""
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
            f"the executables of {exported.fun_name} cannot be used ({e.what}): its StableHLO is "
            "compiled when it is called",
            plait.errors.CacheWarning,
        )


def _differences(names: Sequence[str], there: dict[str, Any], here: dict[str, str]) -> str:
    return ", ".join([
        f"another {name}" if here[name].startswith("sha256") or name == "machine"
        else f"{name} {there.get(name)}, and here is {here[name]}"
        for name in names
    ])  # fmt: skip
