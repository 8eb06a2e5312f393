"""Docstrings in parts: a summary, a line for each parameter, what is returned, what is raised.

Where a docstring names no error, the function is called with an object that is not an array.
A parameter that its docstring does not describe takes its line from the function that this one
refers to ("arguments are those of `sum`"), then from `parameters.toml`, then from its type.

Invariant: each parameter has one line; a text that is found is never left out.
"""

import functools
import inspect
import re
import tomllib
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import plait.typing

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):\s*$")
ITEM = re.compile(r"^  (\*{0,2}\w[^:`]*): (.*)")
LOOSE = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)", re.S)
APART = re.compile(r"\s+(?=(?:Raises|Returns)\s|As (?:numpy|scipy)\.)")
NEXT = re.compile(r"[;.]\s+(?=\w+(?:, \w+)*: )")
REFERS = re.compile(r"`([a-z][\w.]+)`")
ELSEWHERE = re.compile(r"(as (in|for|of|those of)|see) `[\w.]+`\.?$")
"""A text that only names the function whose text holds."""
FROM_TYPES = {
    "ArrayLike": "an array, an array of numpy, or a number",
    "None": "must be None",
    "Array": "an array",
}
SHORT = (
    (str(plait.typing.ArrayLike), "ArrayLike"),
    (str(plait.typing.DTypeLike), "DTypeLike"),
    (str(plait.typing.Shape), "Shape"),
    ("typing.SupportsIndex | collections.abc.Sequence[typing.SupportsIndex]", "Axis"),
    ("typing.SupportsIndex", "int"),
)


class Parts(NamedTuple):
    """The parts of a docstring."""

    paragraphs: list[str]
    parameters: dict[str, str]
    """Texts by name, or by names with commas between them."""
    returns: list[str]
    raises: list[str]
    lists: list[tuple[str, list[str]]]
    """Other sections: their heading, their lines."""
    examples: list[str]


def text_of(x: Any) -> str:
    """Return the documentation of an object, without indentation."""
    own = getattr(x, "doc", None)  # a primitive's; its __doc__ is that of all primitives
    return inspect.cleandoc(own if isinstance(own, str) else inspect.getdoc(x) or "")


def name_of(x: Any) -> str:
    """Return the name that an object has for itself."""
    found = getattr(x, "__name__", "")
    return found if isinstance(found, str) else ""


def of_numpy(x: Any) -> bool:
    """Return whether a function is one of numpy's, unchanged."""
    module = getattr(x, "__module__", None)
    return isinstance(module, str) and module.split(".")[0] == "numpy"


def signature_of(x: Any) -> inspect.Signature | None:
    """The signature of an object, or None where it has none."""
    try:
        return inspect.signature(getattr(x, "rule", x))
    except (TypeError, ValueError):
        return None


def parts_of(text: str, names: set[str]) -> Parts:
    """Take a docstring apart; `names` are those of the parameters."""
    parts = Parts([], {}, [], [], [], [])
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        loose = LOOSE.match(block)
        if block.startswith(">>>"):
            parts.examples.append(block)
        elif SECTION.match(lines[0]):
            section(parts, lines)
        elif loose and {n.strip("* ") for n in loose[1].split(",")} <= names:
            told, *others = APART.split(block)
            parts.parameters.update(items_of(told, names))
            sort(parts, others)
        elif re.match(r"\s{4}", block):
            parts.paragraphs.append(f"```\n{inspect.cleandoc(block)}\n```")
        else:
            sort(parts, APART.split(block))
    return parts


def items_of(text: str, names: set[str]) -> dict[str, str]:
    """Take "a: ...; b, c: ..." apart, at the names of parameters."""
    found: list[list[str]] = []
    for piece in NEXT.split(text):
        item = LOOSE.match(piece)
        if item and {n.strip("* ") for n in item[1].split(",")} <= names:
            found.append([item[1], item[2]])
        else:
            found[-1][1] += f"; {piece}"
    return {name: flat(told) for name, told in found}


def section(parts: Parts, lines: list[str]) -> None:
    """Put a section where it belongs; another one may follow without an empty line."""
    head, body, rest = lines[0].rstrip(": "), [], lines[1:]
    while rest and not SECTION.match(rest[0]) and not re.match(r"(Raises|Returns) ", rest[0]):
        body.append(rest.pop(0))
    items: list[list[str]] = []
    for line in body:
        item = ITEM.match(line)
        items.append([item[1], item[2]]) if item else (items or [["", ""]])[-1].append(line.strip())
        if not items:
            items.append(["", line.strip()])
    if head == "Args":
        parts.parameters.update({name: flat(" ".join(told)) for name, *told in items})
    elif head in ("Returns", "Yields"):
        parts.returns.append(flat(" ".join(body)))
    elif head == "Raises":
        parts.raises.extend(f"{name}: {flat(' '.join(told))}".lstrip(": ") for name, *told in items)
    else:
        lines = [f"* `{name}`: {escaped(flat(' '.join(told)))}" for name, *told in items]
        parts.lists.append((head, lines))
    if rest:
        section(parts, rest) if SECTION.match(rest[0]) else sort(parts, ["\n".join(rest)])


def sort(parts: Parts, texts: list[str]) -> None:
    """Put sentences about errors and results apart from other ones."""
    for text in texts:
        kinds = {"Raises": parts.raises, "Returns": parts.returns}
        kinds.get(text.split()[0], parts.paragraphs).append(text)


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


# ---- types ---------------------------------------------------------------------------------


def type_text(kind: Any) -> str:
    """An annotation, as short as users write it."""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    if typing.get_origin(kind) is not None or "|" in text:
        text = str(kind).replace("NoneType", "None")
    for long, short in SHORT:
        text = text.replace(long, short)
    text = re.sub(r"\b[A-Za-z_]\w*(?:\.\w+)*\.(?=\w)", "", text.replace("~", ""))
    return re.sub(r"Optional\[(\w+)\]", r"\1 | None", text)


def parameter_texts(signature: inspect.Signature) -> list[str]:
    """Each parameter with its type and default, and the marks between them."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    made, kinds = [], []
    for p in signature.parameters.values():
        if kinds and kinds[-1] is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            made.append("/")
        if p.kind is p.KEYWORD_ONLY and not {p.VAR_POSITIONAL, p.KEYWORD_ONLY} & {*kinds}:
            made.append("*")
        kinds.append(p.kind)
        typed = "" if p.annotation is p.empty else f": {type_text(p.annotation)}"
        equals = " = " if typed else "="
        default = "" if p.default is p.empty else equals + default_text(p.default)
        made.append(f"{stars.get(p.kind, '')}{p.name}{typed}{default}")
    return made + ["/"] * bool(kinds and kinds[-1] is inspect.Parameter.POSITIONAL_ONLY)


def default_text(value: Any) -> str:
    """A default, by its name if it is a function or a class."""
    text = getattr(value, "__name__", None) or repr(value)
    return "..." if text.startswith("<") else text


# ---- parameters ----------------------------------------------------------------------------


@functools.cache
def shared() -> dict[str, dict[str, str]]:
    """Texts of parameters that mean the same in all functions of a module."""
    path = Path(__file__).with_name("parameters.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def own_parameters(x: Any) -> dict[str, str]:
    """The texts of parameters in a docstring, by name."""
    found = signature_of(x)
    names = set(found.parameters) if found else set()
    parts = parts_of(text_of(x), names)
    return {n.strip("* "): t for many, t in parts.parameters.items() for n in many.split(",")}


def parameter_lines(module: str, x: Any) -> dict[str, str]:
    """Return a text for each parameter of a function; "" for one that nothing describes."""
    found = signature_of(x)
    if found is None or of_numpy(x):
        return {}
    own, *referred = [own_parameters(f) for f in with_referred(module, x, [])]
    tables = [shared().get(key, {}) for key in (f"{module}.{name_of(x)}", module, "any")]
    docs = [own, tables[0], *referred, *tables[1:]]
    lines = {}
    for name, p in found.parameters.items():
        texts = [d[name] for d in docs if name in d]
        texts.sort(key=lambda t: ELSEWHERE.match(t) is not None)
        text = texts[0] if texts else FROM_TYPES.get(type_text(p.annotation), "")
        lines[name] = text if not text or text.endswith((".", "...")) else text + "."
    return lines


def with_referred(module: str, x: Any, found: list[Any]) -> list[Any]:
    """Return a function, those that its docstring names outside of errors, and theirs in turn."""
    found.append(x)
    for word in REFERS.findall(re.sub(r"Raises [^.]*\.", "", text_of(x).partition(">>>")[0])):
        for owner in (module, "plait.numpy", "plait.lax", "plait"):
            *path, last = f"{owner}.{word}".split(".")
            try:
                other = getattr(import_module(".".join(path)), last)
            except (ImportError, AttributeError):
                continue
            if inspect.isfunction(other) and other not in found:
                with_referred(module, other, found)
            break
    return found


def refused(x: Any) -> str:
    """Return what a function raises for an object that is not an array, found by calling it."""
    found = signature_of(x)
    needed = [p for p in found.parameters.values() if p.default is p.empty] if found else []
    if not needed or any(type_text(p.annotation) != "ArrayLike" for p in needed):
        return ""
    try:
        x(object(), *(np.eye(2, dtype=np.float32) for _ in needed[1:]))
    except plait.errors.NotAnArrayError:
        return f"NotAnArrayError if `{needed[0].name}` is not an array."
    except Exception:  # another complaint came first: nothing is known about this one
        return ""
    return ""


# ---- Markdown ------------------------------------------------------------------------------


def described(module: str, name: str, x: Any) -> Iterator[str]:
    """A docstring as lines of Markdown."""
    if of_numpy(x):
        yield from (f"The function of numpy: numpy.{name}.", "")
        return
    found = signature_of(x)
    parts = parts_of(text_of(x), set(found.parameters) if found else set())
    for text in parts.paragraphs:
        yield from (text if text.startswith("```") else escaped(text), "")
    yield from parameter_list(module, x, parts)
    returns = [escaped(re.sub(r"^Returns ", "", flat(t))) for t in parts.returns]
    given = found.return_annotation if found and not inspect.isclass(x) else None
    if given not in (inspect.Signature.empty, None, Any):
        kind = f"`{type_text(given)}`"
        returns = [f"{kind}: {t}" for t in returns] or [kind]
    if returns:
        yield from ("**Returns** " + " ".join(returns), "")
    raises = [re.sub(r"^Raises ", "", flat(t)) for t in parts.raises] or [refused(x)]
    if any(raises):
        yield from ("**Raises**", "", *(f"* {escaped(t)}" for t in raises), "")
    for head, lines in parts.lists:
        yield from (f"**{head}**", "", *lines, "")
    for text in parts.examples:
        yield from ("```pycon", text, "```", "")


def parameter_list(module: str, x: Any, parts: Parts) -> Iterator[str]:
    """The parameters, a line each."""
    if inspect.isclass(x):
        lines = dict(parts.parameters)
    else:
        lines = {name: text for name, text in parameter_lines(module, x).items() if text}
        told = {n.strip("* ") for many in parts.parameters for n in many.split(",")}
        others = told - lines.keys()  # of functions whose signature holds *args alone
        lines.update({n: t for n, t in parts.parameters.items() if {*n.split(", ")} <= others})
    if lines:
        items = (f"* `{name}`: {escaped(text)}" for name, text in lines.items())
        yield from ("**Parameters**", "", *items, "")


def escaped(text: str) -> str:
    """Text whose stars and underscores are no emphasis, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<])", r"\\\1", p) for p in parts)
