"""Lists of the names and settings of JAX for `plait_jax`.

    python tests/libraries/names_of_jax.py            # fail if a list is not JAX's
    python tests/libraries/names_of_jax.py --write    # write the lists

It runs where the version of jax that `plait_jax` speaks for is installed.

Invariant: names are read from the modules themselves, or from the sources of modules that cannot be
imported; a line of the file is a module and its names.
"""

import ast
import importlib
import os
import pkgutil
import sys
import types
import warnings
from pathlib import Path

import jax

FOLDER = Path(__file__).parents[2] / "packages" / "jax" / "src" / "plait_jax"

SETTINGS = sorted(jax.config._value_holders)
"""The settings that are there once jax is imported, without those of its tests."""

INNER = """
ad_checkpoint ad_util api api_util array basearray callback checkify compiler config core
custom_derivatives custom_transpose debugging deprecations dispatch distributed dlpack dtypes earray
effects error_check errors export flatten_util hijax image internal_test_util interpreters
interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval interpreters.pxla
interpreters.xla lax lax.control_flow lax.control_flow.common lax.control_flow.conditionals
lax.control_flow.for_loop lax.control_flow.loops lax.control_flow.solves lax.convolution lax.lax
lax.linalg lax.other lax.parallel lax.slicing lax.special lax.windowed_reductions lib lib.mlir
lib.mlir.dialects lib.mlir.ir lib.xla_client linear_util literals lru_cache mesh monitoring
nn nn.functions nn.initializers numpy numpy.array numpy.array_methods
numpy.einsum numpy.fft numpy.indexing numpy.lax_numpy numpy.linalg numpy.reductions
numpy.scalar_types numpy.ufuncs numpy.util ops ops.scatter op_shardings partition_spec path pjit
pretty_printer prng profiler public_test_util random scipy scipy.linalg scipy.optimize
scipy.signal scipy.special scipy.stats shard_map sharding source_info_util stages
state state.discharge state.indexing state.primitives state.types test_util traceback_util
tree tree_util typing util xla_bridge
"""
"""Modules of `jax._src` that libraries look into.

Neither `sharding_impls` nor `named_sharding`: jaxlib imports these, if they exist, and calls their
classes with devices of its own.
"""


def modules() -> list[str]:
    """The public modules of jax, and those inner ones."""
    found = ["jax", "jax._src", *(f"jax._src.{name}" for name in INNER.split())]
    folders = [("jax.", list(jax.__path__))]
    while folders:
        prefix, path = folders.pop()
        for info in pkgutil.iter_modules(path, prefix):
            if "._" in info.name:
                continue
            found.append(info.name)
            if info.ispkg:  # by folders: a package need not be importable here
                below = [os.path.join(p, info.name.rpartition(".")[2]) for p in path]
                folders.append((f"{info.name}.", below))
    return sorted({*found})


def names(full: str) -> list[str] | None:
    """The names of a module, those that warn of their end among them; None if there is none."""
    try:
        module = importlib.import_module(full)
    except ModuleNotFoundError as e:
        if e.name == full:
            return None
        return written(full)
    except Exception:  # whatever an optional module needs
        return written(full)
    inner = full.startswith("jax._src")
    found = []
    for name in sorted({*dir(module), *getattr(module, "_deprecations", ())}):
        if name.startswith("__") or (name[0] == "_" and not inner):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # a name that was taken away says so when it is asked for
            continue
        foreign = isinstance(value, types.ModuleType) and value.__name__ != f"{full}.{name}"
        if not foreign or full in ("jax", "jax._src") or full.startswith(OF_MODULES):
            found.append(name)
    return found


OF_MODULES = ("jax.extend", "jax.experimental.pallas", "jax._src.lib")
"""Modules whose names are other modules by intent."""


def written(full: str) -> list[str] | None:
    """The names that a module's source binds at its top: of one that cannot be imported here."""
    file = Path(jax.__path__[0], *full.split(".")[1:])
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if not file.exists():
        return None
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.col_offset:
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jax"):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign) and not node.col_offset:
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and not node.col_offset:
            found |= {node.target.id} if isinstance(node.target, ast.Name) else set()
    return sorted(name for name in found if name[0] != "_" and name != "*")


def text() -> str:
    """The contents of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {full: names(full) for full in modules()}
    rows = {full: set(mine) for full, mine in found.items() if mine is not None}
    for full in rows:
        package, _, name = full.rpartition(".")
        if package in rows:
            rows[package].add(name)
    return "".join(" ".join([full, *sorted(mine)]) + "\n" for full, mine in rows.items())


def settings() -> str:
    """A line for each setting: its name, a type or its values, and the default."""
    lines = []
    for name in SETTINGS:
        kind, _, more = jax.config.meta[name]
        default = jax.config.values[name]
        if kind == "enum":
            kind = "|".join(more["enum_values"])
        elif kind == "enum_class":
            members = [e.value if isinstance(e.value, str) else e.name for e in more["enum_class"]]
            default = default.value if isinstance(default.value, str) else default.name
            kind = "|".join(members)
        else:
            kind = kind.__name__
        lines.append(f"{name} {kind} {default!r}\n")
    return "".join(lines)


if __name__ == "__main__":
    texts = {FOLDER / "names.txt": text(), FOLDER / "settings.txt": settings()}
    if "--write" in sys.argv:
        for file, content in texts.items():
            file.write_text(content, encoding="utf-8")
    else:
        sys.exit(any(f.read_text(encoding="utf-8") != content for f, content in texts.items()))
