"""The stubs of `plait` for editors and type checkers, which cannot see names found at run time.

    python docs/stubs.py            # print the stubs that differ from the code
    python docs/stubs.py --write    # write them

The stub package `plait-stubs` is partial: checkers read all other modules from the sources.  It
declares the names of `plait`, those of plugins included, the modules that exist at run time only
(`plait.export`, `plait.custom_derivatives`), and the members of arrays.

Invariant: every stub is made of what the package has at run time: the members of values, the
sources of their signatures, the tables of core, and the entry points of the project's packages.
"""

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import plait
from plait._api import aliases
from plait._core.array import Array, Value

SOURCES = Path(__file__).resolve().parents[1] / "packages" / "core" / "src"
STUBS = "plait-stubs"
MEMBERS = f"{STUBS}/_core/array_type.pyi"
OURS = {
    f"plait-{name}"
    for name in (
        "core",
        "numpy",
        "checks",
        "testing",
        "inspect",
        "autodiff",
        "batching",
        "sharding",
        "export",
        "state",
        "sparse",
    )
}
"""The distributions whose names belong to the stubs."""

INTERNAL = {"buffer", "key", "receive"}
"""Members of arrays that are for other modules of core."""
SPECIAL = {
    "__array__", "__array_namespace__", "__bool__", "__complex__", "__dlpack__",
    "__dlpack_device__", "__float__", "__index__", "__int__", "__len__",
}  # fmt: skip
"""Special methods of arrays, besides the operators, that Python or other libraries call."""
KNOWN = {
    "Any": "typing",
    "Callable": "collections.abc",
    "Iterator": "collections.abc",
    "Literal": "typing",
    "Sequence": "collections.abc",
    "SupportsIndex": "typing",
    "np": "",
    "ArrayLike": "plait.typing",
    "Axis": "plait.typing",
    "Aval": "plait._types.avals",
    "At": "plait._ops.subscript",
    "Dim": "plait._types.dims",
    "DTypeLike": "plait.typing",
    "Shape": "plait.typing",
}
"""Names in the annotations of members, and the modules that the stub imports them from."""

JOINED = ("debug", "lax")
"""The modules of core that plugins add names to."""


# The members of arrays


def members() -> dict[str, Any]:
    """Return the members of arrays that users call, by name."""
    found = {}
    for kind in (Array, Value):
        for name, x in vars(kind).items():
            operator = name in vars(Value) and name.startswith("__") and callable(x)
            if name in SPECIAL or operator or not (name.startswith("_") or name in INTERNAL):
                found.setdefault(name, x if hasattr(x, "fget") else getattr(kind, name))
    return {name: x for name, x in sorted(found.items()) if callable(x) or hasattr(x, "fget")}


def definition(x: Any) -> ast.FunctionDef:
    """Return the syntax of the function that defines a member."""
    f = inspect.unwrap(x.fget if hasattr(x, "fget") else x)
    node = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]
    assert isinstance(node, ast.FunctionDef), x
    return node


def annotation(node: ast.expr | None) -> str:
    """Return an annotation as text: quotes and the modules of names are left out."""
    if node is None:
        return "Any"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    text = ast.unparse(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in KNOWN:
            text = text.replace(ast.unparse(part), part.attr)
    return text.replace("_np.", "np.")


def parameters(node: ast.FunctionDef) -> str:
    """Return the parameters of a method as text; the first one is `self`."""
    args = node.args
    names = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(names) - len(args.defaults)) + args.defaults
    shown = ["self"]
    for i, (arg, default) in enumerate(zip(names, defaults)):
        if i:
            shown.append(parameter(arg, default))
        if i == len(args.posonlyargs) - 1:
            shown.append("/")
    if args.vararg:
        shown.append(f"*{args.vararg.arg}: {annotation(args.vararg.annotation)}")
    elif args.kwonlyargs:
        shown.append("*")
    shown += [parameter(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        shown.append(f"**{args.kwarg.arg}: {annotation(args.kwarg.annotation)}")
    return ", ".join(shown)


def parameter(arg: ast.arg, default: ast.expr | None) -> str:
    """Return one parameter as text."""
    text = f"{arg.arg}: {annotation(arg.annotation)}"
    if default is None:
        return text
    return f"{text} = {ast.unparse(default) if isinstance(default, ast.Constant) else '...'}"


def declaration(name: str, x: Any) -> Iterator[str]:
    """Yield the lines that declare a member."""
    node = definition(x)
    if hasattr(x, "fget"):
        yield "@property"
    # `object.__eq__` takes every object and returns a bool.
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    head = f"def {name}({parameters(node)}) -> {annotation(node.returns)}:"
    text = ast.get_docstring(node)
    if not text or name.startswith("__"):
        yield f"{head} ...{ignored}"
        return
    yield head
    yield from textwrap.wrap(f'"""{text.partition(chr(10) * 2)[0]}"""', 92, initial_indent="    ",
                             subsequent_indent="    ")  # fmt: skip


def imports(lines: Iterable[str]) -> list[str]:
    """Return the imports of the names in the annotations of a stub."""
    tree = ast.parse("\n".join(lines))
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id != "aval"}
    used -= {"Array", *dir(builtins)}
    if unknown := used - KNOWN.keys():
        raise KeyError(f"names in annotations of members that KNOWN lacks: {sorted(unknown)}")
    plain = {f"from {KNOWN[name]} import {name}" for name in used if KNOWN[name]}
    return ["import numpy as np", *sorted(plain)]


def members_stub() -> str:
    """Return the stub of the class of arrays."""
    body = [f"    {line}" for name, x in members().items() for line in declaration(name, x)]
    doc = '"""The class whose instances are arrays and traced values, as type checkers see it."""'
    head = ["class Array:", f"    {doc}", "", "    aval: Aval"]
    lines = [*head, *body]
    return "\n".join([said("the members of values"), "", *imports(lines), "", *lines, ""])


def said(of: str) -> str:
    """Return the first line of a stub."""
    return f"# Written by docs/stubs.py from {of}: do not edit."


# The names and modules of plait


def points(group: str) -> list[EntryPoint]:
    """Return the entry points of the project's packages in a group."""
    found = [p for p in entry_points(group=group) if p.dist is not None and p.dist.name in OURS]
    return sorted(found, key=lambda p: p.name)


def imported(point: EntryPoint, name: str) -> str:
    """Return the line that imports what an entry point names, as `name`."""
    if point.attr:
        return exported(point.module, point.attr, name)
    above, _, last = point.module.rpartition(".")
    return exported(above, last, name)


def exported(module: str, attribute: str, name: str) -> str:
    """Return the lines by which a stub has a name of a module, under another name if need be.

    Checkers take an import for a public name only if it keeps the name.
    """
    if attribute == name:
        return f"from {module} import {attribute} as {name}"
    return f"from {module} import {attribute} as _{name}\n{name} = _{name}"


def core_names() -> Iterator[str]:
    """Yield the imports of core's own names."""
    homes = {}
    for node in ast.parse(Path(inspect.getfile(plait)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                homes[alias.asname or alias.name] = f"plait.{node.module}", alias.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                homes[ast.unparse(target)] = homes[node.value.id]
    for module, names in plait._LATER.items():
        homes |= {name: (f"plait.{module}", name) for name in names}
    for name, (module, attribute) in sorted(homes.items()):
        if not name.startswith("_"):
            yield exported(module, attribute, name)


def names_stub() -> str:
    """Return the stub of `plait` itself."""
    modules = {name.partition(".")[0] for name in alias_modules()}
    lines = [f"from plait import {name} as {name}" for name in sorted(plait._MODULES | modules)]
    lines += core_names()
    lines += [imported(p, p.name) for p in points("plait.api") if p.attr]
    head = said("the names of `plait` and the entry points of the plugins")
    return "\n".join([head, "", *lines, "", "__all__: list[str]", "__version__: str", ""])


def homes(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Return (module, attribute) of what a module of core imports, by the names it has there."""
    found = {}
    package = module.__name__ if hasattr(module, "__path__") else module.__package__ or ""
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        above = [package.rsplit(".", node.level - 1)[0]] if node.level else []
        home = ".".join([*above, *filter(None, [node.module])])
        for alias in node.names:
            every = import_module(home).__all__ if alias.name == "*" else [alias.name]
            found |= {(alias.asname or name): (home, name) for name in every}
    return found


def declared(f: ast.FunctionDef) -> str:
    """Return the declaration of a function, with the first paragraph of its docstring."""
    doc = (ast.get_docstring(f) or "").partition("\n\n")[0]
    f.body = [ast.Expr(ast.Constant(" ".join(doc.split()))), ast.Expr(ast.Constant(...))]
    return ast.unparse(f)


def joined_module(module: ModuleType) -> list[str]:
    """Return the lines of the stub of a module of core that plugins add names to."""
    public, known = set(module.__all__), homes(module)
    own = [n for n in ast.parse(inspect.getsource(module)).body if isinstance(n, ast.FunctionDef)]
    functions = "\n".join([declared(f) for f in own if f.name in public])
    used = {n.id for n in ast.walk(ast.parse(functions)) if isinstance(n, ast.Name)}
    lines = [exported(*known[name], name) for name in sorted(public & known.keys())]
    lines += [f"from {known[n][0]} import {n}" for n in sorted((used - public) & known.keys())]
    lines += [imported(p, p.name) for p in points(module.__name__)]
    return [*lines, "", functions] if functions else lines


def alias_modules() -> dict[str, list[str]]:
    """Return the lines of the stub of each module that exists at run time only."""
    found: dict[str, list[str]] = {}
    for module, entries in aliases.TABLE.items():
        lines = found.setdefault(module, [])
        for name, _, path in (entry.partition("=") for entry in entries.split()):
            above, _, last = (path or name).rpartition(".")
            lines.append(exported(".".join(filter(None, ["plait", above])), last, name))
    for point in points(aliases.GROUP):
        module, _, name = point.name.rpartition(".")
        found.setdefault(module, []).append(imported(point, name))
    for point in points("plait.api"):
        if not point.attr:
            found |= public_module(point.name, import_module(point.module))
    for module in list(found):
        while "." in module:
            module, _, below = module.rpartition(".")
            line = f"from plait.{module} import {below} as {below}"
            if line not in (lines := found.setdefault(module, [])):
                lines.append(line)
    return found


def public_module(short: str, module: ModuleType) -> dict[str, list[str]]:
    """Return the stubs of a plugin's module, and of the modules in it that users can import."""
    names = getattr(module, "__all__", None)
    # Each by its name: mypy does not read lists that are put together, `__all__ += part.__all__`.
    found, named = {}, []
    for name in names or ():
        x = getattr(module, name)
        if inspect.ismodule(x) and find_spec(f"plait.{short}.{name}"):
            found |= public_module(f"{short}.{name}", x)
        else:
            named.append(f"from {module.__name__} import {name} as {name}")
    return found | {short: named or [f"from {module.__name__} import *"]}


def stubs() -> dict[str, str]:
    """Return the text of every stub, by its path in the sources of core."""
    found = {MEMBERS: members_stub(), f"{STUBS}/__init__.pyi": names_stub()}
    found[f"{STUBS}/py.typed"] = "partial\n"
    for module, lines in alias_modules().items():
        head = said("the tables of core and the entry points of the plugins")
        text = "\n".join([head, "", *sorted(lines), ""])
        found[f"{STUBS}/{module.replace('.', '/')}/__init__.pyi"] = text
    for short in JOINED:
        head = said(f"`plait.{short}` and the entry points of the plugins")
        lines = joined_module(import_module(f"plait.{short}"))
        found[f"{STUBS}/{short}/__init__.pyi"] = "\n".join([head, "", *lines, ""])
    return found


def written() -> dict[str, str]:
    """Return the stubs that the sources have now."""
    files = [p for p in (SOURCES / STUBS).rglob("*") if p.is_file()]
    return {p.relative_to(SOURCES).as_posix(): p.read_text(encoding="utf-8") for p in files}


def main(write: bool) -> None:
    """Print the paths of stubs that differ from the code; write them if asked to."""
    now, before = stubs(), written()
    for path in sorted(now.keys() | before.keys()):
        if now.get(path) == before.get(path):
            continue
        print(path)
        if not write:
            continue
        if path not in now:
            (SOURCES / path).unlink()
            continue
        (SOURCES / path).parent.mkdir(parents=True, exist_ok=True)
        (SOURCES / path).write_text(now[path], encoding="utf-8")


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
