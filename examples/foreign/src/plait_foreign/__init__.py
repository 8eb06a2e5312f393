"""A recurrence in C++: `recur(x, decay)[i] = decay[i] * recur(x, decay)[i - 1] + x[i]`.

    plait_foreign.load(plait_foreign.build("."))     # once: the system's compiler, and the loader
    y = recur(x, decay)                              # eager, or in any program

The primitive is its type rule; below is how programs call the C++. Its derivatives are in
`derivatives`, its mapping in `mapping`: these need the plugins whose tables they fill, and are
imported by these tables alone, when they are first asked about a primitive of `foreign`.

Invariant: nothing here but `plait` is imported, and nothing is compiled before `build`.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from plait import ext, ffi
from plait.ext.lower import attr

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

TARGETS = {np.dtype(d): f"plait_foreign_recur_{d}" for d in ("float32", "float64")}
_loaded = []


@ext.primitive("foreign.recur")
def recur(x: ext.Aval, decay: ext.Aval, *, reverse: bool = False) -> ext.Aval:
    """y[i] = decay[i] * y[i - 1] + x[i] along the last axis, or y[i + 1] if `reverse`; y is zero
    outside. Both operands are floats [..., n]."""
    if not x.same_type(decay) or x.dtype not in TARGETS or not x.ndim:
        raise ext.PlaitError(
            f"foreign.recur takes two arrays of one shape and float dtype, not {x!r} and {decay!r}",
            fix="convert with .astype(numpy.float32), and plait.numpy.broadcast_to one of them",
        )
    return x.strong()


@ext.lower_rules.rule(recur)
def _(e, xs, ins, outs, reverse=False):
    if not _loaded:
        raise ext.PlaitError(
            "the library of foreign.recur is not loaded",
            fix="plait_foreign.load(plait_foreign.build(folder))",
        )
    return e.op(
        "stablehlo.custom_call",
        xs,
        *outs,
        call_target_name=attr(f'"{TARGETS[outs[0].dtype]}"'),
        api_version=attr("4 : i32"),
        backend_config=attr(f"{{reverse = {str(reverse).lower()}}}"),
    )


def build(folder, compiler=None):
    """Compile the C++ into `folder`: the path of the library.

    Args:
      folder: where to, a path.
      compiler: its name; by default of the environment's CXX, or c++.

    Raises PlaitError if there is no such compiler, or with what it says.
    """
    compiler = compiler or os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise ext.PlaitError(f"there is no compiler {compiler!r}", fix="install one, or set CXX")
    source, library = Path(__file__).with_name("recurrence.cc"), Path(folder) / "libforeign.so"
    command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-I", ffi.include_dir()]
    done = subprocess.run([*command, source, "-o", library], capture_output=True, text=True)
    if done.returncode:
        raise ext.PlaitError(f"{compiler} failed:\n{done.stderr}", fix="use a compiler of C++17")
    return library


def load(library):
    """Make the compiled function known to the runtime; a second call does nothing."""
    if not _loaded:
        for target in TARGETS.values():
            symbol = getattr(ctypes.CDLL(str(library)), target)
            ffi.register_ffi_target(target, ffi.pycapsule(symbol))
        _loaded.append(library)
