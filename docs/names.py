"""The pages of the reference, made of what public names say of themselves.

A line `::: module` in a page stands for everything public of a module, and `::: module: a, b` for
some of it.  `python docs/names.py plait.nn` prints what a module becomes.

Invariant: signatures and texts are those of the objects that users get, however these were made.
"""

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import numpy as np

import plait
from plait._plugins.metadata import public_names

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads a hook by its path
import docstrings  # noqa: E402
from docstrings import escaped, text_of  # noqa: E402

ASKED = re.compile(r"^::: ([\w.]+)(?:: (.*))?$", re.M)
ROOT = Path(__file__).parents[1]
SOURCE = "https://plait.example/source/blob/main/"
"""Where the source is published, by the metadata of the packages."""
WIDTH = 72
"""The columns of a signature, beyond which each parameter has a line."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook of mkdocs."""
    return ASKED.sub(lambda m: described(m[1], m[2]), markdown)


def described(module: str, names: str | None = None) -> str:
    """Public names of a module, as Markdown."""
    owner = import_module(module)
    chosen = chosen_of(module, names)
    first_names: dict[int, str] = {}
    for name in sorted(chosen, key=lambda n: n != docstrings.name_of(getattr(owner, n))):
        first_names.setdefault(id(getattr(owner, name)), name)
    lines = []
    for name in chosen:
        x = getattr(owner, name)
        other = first_names[id(x)]
        lines += entry(module, name, x) if other == name else alias(module, name, other)
    if names is None and module.startswith("plait.ext"):
        others = sorted({*owner.__all__} - {*chosen}, key=str.lower)
        told = {name: meaning(owner, name) for name in others}
        lines += [f"* `{name}`: {escaped(text)}" for name, text in told.items() if text]
    return "\n".join(lines)


def chosen_of(module: str, names: str | None) -> list[str]:
    """Return the names of a module that a line asks for."""
    return public(import_module(module)) if not names else names.replace(",", " ").split()


def meaning(owner: Any, name: str) -> str:
    """What is said of a table, a trait, a module or a constant, in a line; "" if nothing is."""
    x = getattr(owner, name)
    own = getattr(x, "promise", None) or getattr(x, "__doc__", None)  # a trait's, a table's
    if isinstance(own, str) and own != type(x).__doc__:
        return first(own)
    return first(below(owner, name))


def below(owner: Any, name: str) -> str:
    """The string below the assignment that gives a constant its value, wherever that is."""
    body = ast.parse(inspect.getsource(owner)).body
    for node, after in zip(body, [*body[1:], None]):
        if isinstance(node, ast.ImportFrom):
            above = owner.__name__ if hasattr(owner, "__path__") else owner.__package__
            source = resolve_name("." * node.level + (node.module or ""), above)
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return below(import_module(source), alias.name)
                if alias.name == "*" and name in import_module(source).__all__:
                    return below(import_module(source), name)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in targets(node):
            said = after.value if isinstance(after, ast.Expr) else None
            value = said.value if isinstance(said, ast.Constant) else None
            return inspect.cleandoc(value) if isinstance(value, str) else ""
    return ""


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that an assignment gives values."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def public(module: Any) -> list[str]:
    """The names that a module offers, but for modules and dtypes."""
    names = {*getattr(module, "__all__", ()), *public_names(module.__name__)}
    return [n for n in sorted(names, key=str.lower) if documented(getattr(module, n))]


def documented(x: Any) -> bool:
    """Whether an object says anything of itself that is not said of its class."""
    return callable(x) and bool(text_of(x)) and not inspect.ismodule(x)


# ---- one name ------------------------------------------------------------------------------


def entry(module: str, name: str, x: Any) -> Iterator[str]:
    """One name, as lines of Markdown."""
    yield from heading(module, name)
    yield from ("```python", signature_text(name, x), "```", "")
    found = docstrings.signature_of(x)
    linked = functools.partial(with_links, module, {name, *(found.parameters if found else ())})
    yield from map(linked, docstrings.described(module, name, x))
    if inspect.isclass(x):
        yield from map(linked, methods(x))
    place = source(x)
    if place:
        yield from (f"[Source]({SOURCE}{place})", "")


def alias(module: str, name: str, other: str) -> Iterator[str]:
    """A second name of an object that is described under another one."""
    yield from heading(module, name)
    yield from (f"Another name of [`{other}`](#{dotted(module, other)}).", "")


def heading(module: str, name: str) -> Iterator[str]:
    """The heading of a name, which links lead to."""
    yield from (f"### {name} {{ #{dotted(module, name)} }}", "")


def dotted(module: str, name: str) -> str:
    """Return a name as users write it."""
    if module.startswith("plait_") or "._" in module:
        same = getattr(plait, name, None) is getattr(import_module(module), name)
        return f"plait.{name}" if same else f"{module}.{name}"
    return f"{module}.{name}"


def methods(kind: type) -> Iterator[str]:
    """The public methods and properties of a class, inherited ones of arrays too, a line each."""
    bases = kind.__mro__ if kind.__module__ == "plait._core.array" else (kind,)
    members = {name: x for base in reversed(bases) for name, x in vars(base).items()}
    for name, x in sorted(members.items()):
        if hasattr(type(x), "__get__") and not hasattr(x, "fget"):
            x = inspect.getattr_static(kind, name)
        static = isinstance(x, staticmethod)
        x = getattr(x, "__func__", x)  # of class methods and static ones
        text = text_of(x)
        if not name.startswith("_") and text and (callable(x) or hasattr(x, "fget")):
            shown = name if hasattr(x, "fget") else f"{name}{signature(x, bound=not static)}"
            yield f"* `{shown}`: {first(text)}"
    yield ""


def first(text: str) -> str:
    """The first paragraph."""
    return " ".join(text.split("\n\n")[0].split())


def signature(x: Any, bound: bool = False) -> str:
    """Names and defaults of the parameters."""
    found = docstrings.signature_of(x)
    if found is None:
        return ""
    given = list(found.parameters.values())[1 if bound else 0 :]
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in given]
    return str(inspect.Signature(plain))


def signature_text(name: str, x: Any) -> str:
    """A signature with its types; each parameter has a line if they do not fit into one."""
    found = docstrings.signature_of(x)
    if found is None:
        return name
    parts = docstrings.parameter_texts(found)
    kind = found.return_annotation
    end = "" if kind is found.empty or inspect.isclass(x) else f" -> {docstrings.type_text(kind)}"
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){end}"])


def source(x: Any) -> str:
    """Return the file and line where an object is written, or "" where that is not in a package."""
    x = inspect.unwrap(getattr(x, "rule", x))
    try:
        path, line = inspect.getsourcefile(x) or "", inspect.getsourcelines(x)[1]
    except (OSError, TypeError):
        return ""
    inside = re.split(r"/(?:site-packages|src)/", path)[-1]
    found = next(ROOT.glob(f"packages/*/src/{inside}"), None) if inside != path else None
    named = inspect.isclass(x) or getattr(x, "__code__", x).co_name == docstrings.name_of(x)
    if found is None or not named:
        return ""
    return f"{found.relative_to(ROOT).as_posix()}#L{line}"


# ---- links ---------------------------------------------------------------------------------


@functools.cache
def pages() -> dict[str, str]:
    """Return the page and anchor of each name of the reference."""
    found = {}
    for path in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for module, names in ASKED.findall(path.read_text(encoding="utf-8")):
            for name in chosen_of(module, names):
                key = dotted(module, name)
                found.setdefault(key, f"{path.name}#{key}")
    return found


def with_links(module: str, own: set[str], line: str) -> str:
    """Return a line with links at names of the reference and of numpy; `own` are those of the
    described function and of its parameters."""
    if line.startswith((">>>", "```", "    ")):
        return line

    def link(match: re.Match) -> str:
        word = match[1]
        for key in (f"{module}.{word}", word, f"plait.{word}"):
            if key in pages() and word.rpartition(".")[2] not in own:
                return f"[`{word}`]({pages()[key]})"
        return match[0]

    line = re.sub(r"(?<!\[)`([\w.]+)`(?!\])", link, line)
    return re.sub(r"\bnumpy\.((?:fft\.|linalg\.)?[a-z](?:\w|\\_)*)", numpys, line)


def numpys(match: re.Match) -> str:
    """A link to numpy's page of a function, if there is one."""
    x: Any = np
    path = match[0].replace("\\", "")
    for part in path.split(".")[1:]:
        x = getattr(x, part, None)
    if not callable(x) or inspect.isclass(x) or match.string[: match.start()].endswith(("`", ".")):
        return match[0]
    return f"[{match[0]}](https://numpy.org/doc/stable/reference/generated/{path}.html)"


if __name__ == "__main__":
    print("\n".join(described(name) for name in sys.argv[1:]))
