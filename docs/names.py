"""The pages of the reference, made of what public names say of themselves.

A line `::: module` in a page stands for everything public of a module, and `::: module: a, b` for
some of it.  `python docs/names.py plait.nn` prints what a module becomes.

Invariant: signatures and texts are those of the objects that users get, however these were made.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import resolve_name
from typing import Any

from plait._plugins.metadata import public_names

ASKED = re.compile(r"^::: ([\w.]+)(?:: (.*))?$", re.M)
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields)(:| )", re.M)
ITEM = re.compile(r"^  (\*{0,2}\w[^:]*): ")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook of mkdocs."""
    return ASKED.sub(lambda m: described(m[1], m[2]), markdown)


def described(module: str, names: str | None = None) -> str:
    """Public names of a module, as Markdown."""
    owner = import_module(module)
    chosen = public(owner) if names is None else names.replace(",", " ").split()
    lines = [line for name in chosen for line in entry(name, getattr(owner, name))]
    if names is None and module.startswith("plait.ext"):
        others = sorted({*owner.__all__} - {*chosen}, key=str.lower)
        told = {name: meaning(owner, name) for name in others}
        lines += [f"* `{name}`: {escaped(text)}" for name, text in told.items() if text]
    return "\n".join(lines)


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


def text_of(x: Any) -> str:
    """What an object says of itself."""
    own = getattr(x, "doc", None)  # a primitive's; its __doc__ is that of all primitives
    return inspect.cleandoc(own if isinstance(own, str) else inspect.getdoc(x) or "")


def entry(name: str, x: Any) -> Iterator[str]:
    """One name, as lines of Markdown."""
    yield from (f"### {name}", "", "```", f"{name}{signature(x)}", "```", "")
    yield from prose(text_of(x))
    yield ""
    if inspect.isclass(x):
        yield from methods(x)


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
    try:
        found = inspect.signature(getattr(x, "rule", x))
    except (TypeError, ValueError):
        return ""
    given = list(found.parameters.values())[1 if bound else 0 :]
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in given]
    return str(inspect.Signature(plain))


def prose(text: str) -> Iterator[str]:
    """A docstring as Markdown: sections become lists, examples become code."""
    for block in re.split(r"\n\s*\n", text):
        if block.startswith(">>>"):
            yield from ("```pycon", block, "```", "")
        elif re.match(r"\s{4}", block):
            yield from ("```", inspect.cleandoc(block), "```", "")
        elif SECTION.match(block):
            yield from sections(block.splitlines())
        else:
            yield from (escaped(block), "")


def sections(lines: Iterable[str]) -> Iterator[str]:
    """`Args:` and its kin."""
    for line in lines:
        head = SECTION.match(line)
        item = ITEM.match(line)
        if head and line.rstrip().endswith(":"):
            yield from ("", f"**{head[1]}**", "")
        elif head:
            yield from ("", escaped(line))
        elif item:
            yield f"* `{item[1]}`: {escaped(line[item.end() :])}"
        else:
            yield "  " + escaped(line.strip())
    yield ""


def escaped(text: str) -> str:
    """Text whose stars and underscores are no emphasis, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<])", r"\\\1", p) for p in parts)


if __name__ == "__main__":
    print("\n".join(described(name) for name in sys.argv[1:]))
