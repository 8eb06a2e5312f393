"""The snapshot of what plugins build on: `packages/core/ext-api.txt`, a line for each name.

    python docs/ext_api.py            # what changed since the last release of core
    python docs/ext_api.py --write    # write the snapshot

A line says what a name is, how it is called, and which traits a primitive has.  Reviewers read the
differences of this file; `tests/test_ext_api.py` compares it with the code, and holds PLUGIN_API to
what changed since the last release.

Invariant: everything is asked of the objects that plugins get, since many primitives are made by
calls that no reader of sources sees; annotations are left out, since they change nothing.
"""

import ast
import inspect
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from plait import ext
from plait.ext import ops

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "packages" / "core" / "ext-api.txt"
HEAD = "PLUGIN_API"
PLAIN = (type(None), bool, int, float, str)

OFFERED = ("notes", "ops.attention", "ops.linalg", "ops.special", "testing")
"""Modules of `plait.ext` that were core's, and that packages of their own offer now."""

GIVEN_BY_JAX = frozenset([
    f"plait.ext.{name}" for name in (
        "ir.Program.constvars", "ir.Program.invars", "ir.Program.jaxpr", "ir.Program.outvars",
        "types.Aval.strip_weak_type", "types.Aval.to_tangent_aval", "values.Array.device_buffer",
    )
])  # fmt: skip
"""Members with JAX's names, which plait-jax adds to the classes of core that had them: code that is
written for JAX has them where it is run."""

NONE, MINOR, MAJOR = range(3)
STEPS = ("nothing", "a minor step", "a major step")


# What there is


def modules() -> list[str]:
    """The modules whose names plugins may import; those that define what others repeat first."""
    families = [f"plait.ext.ops.{name}" for name in ops.FAMILIES]
    own = [f"plait.ext.{name}" for name in ext.MODULES if name != "ops"]
    offered = [f"plait.ext.{name}" for name in OFFERED]
    return [*own, *families, *offered, "plait.ext"]


def snapshot() -> str:
    """The text of the snapshot of the code at hand."""
    seen: dict[int, str] = {}
    lines = [line for name in modules() for line in names_of(name, seen)]
    return "\n".join([f"{HEAD} {version(ext.PLUGIN_API)}", "", *sorted(lines), ""])


def version(api: tuple[int, ...]) -> str:
    """A version as it is written."""
    return ".".join(map(str, api))


def names_of(module: str, seen: dict[int, str]) -> Iterator[str]:
    """The lines of a module: its names, and the public members of its classes."""
    owner = import_module(module)
    for name in owner.__all__:
        x, full = getattr(owner, name), f"{module}.{name}"
        if repeatable(x) and seen.setdefault(id(x), full) != full:
            yield f"{full}: is {seen[id(x)]}"
            continue
        yield f"{full}: {described(x)}"
        if inspect.isclass(x):
            yield from (f"{full}.{line}" for line in members(x))


def repeatable(x: Any) -> bool:
    """Whether an object is known by where it is, unlike a number."""
    return callable(x) or isinstance(x, ext.RuleTable | type(ext.Linear))


def described(x: Any) -> str:
    """What a name is, in a line."""
    if isinstance(x, ext.Primitive):
        traits = " ".join(t.name.rpartition(".")[2] for t in x.traits)
        name = " formerly ".join((x.name, *x.formerly))
        return f"primitive {name}{operands(x.rule)}" + (f" is {traits}" if traits else "")
    if isinstance(x, ext.RuleTable):
        return f"table {x.name}"
    if isinstance(x, type(ext.Linear)):
        return f"trait {x.name}"
    if inspect.ismodule(x):
        return "module"
    if inspect.isclass(x):
        return f"class{signature(x)}"
    if callable(x):
        return f"function{signature(x)}"
    return "value"


@cache
def public() -> frozenset[int]:
    """What `plait.ext` offers, by identity."""
    owners = [import_module(name) for name in modules()]
    return frozenset(id(getattr(owner, name)) for owner in owners for name in owner.__all__)


def members(kind: type) -> Iterator[str]:
    """The public members that a class has of its own or of a base which is not in `plait.ext`."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base is kind or (base.__module__.startswith("plait") and id(base) not in public()):
            found |= dict.fromkeys(annotated(base))
            found |= vars(base)
    for name, x in found.items():
        if not name.startswith("_"):
            inner = getattr(x, "__func__", x)
            # methods of arrays that are functions of plait.numpy are replaced by them when used:
            # these are documented, and versioned, as the surface that they are
            if str(getattr(inner, "__module__", "")).startswith("plait_numpy"):
                yield f"{name}: method"
                continue
            called = inspect.isfunction(inner) or inspect.ismethoddescriptor(inner)
            yield f"{name}: " + (f"method{signature(inner, bound=True)}" if called else "attribute")


def annotated(kind: type) -> Iterable[str]:
    """The names that the body of a class gives a type."""
    if sys.version_info < (3, 14):
        return kind.__dict__.get("__annotations__", ())
    import annotationlib  # from Python 3.14 on, annotations are computed when they are asked for

    return annotationlib.get_annotations(kind, format=annotationlib.Format.FORWARDREF)


def signature(x: Any, bound: bool = False) -> str:
    """Names, kinds and defaults of the parameters; nothing for what jaxlib compiles, of which one
    release tells them and another does not."""
    of = getattr(x, "__module__", None) or ""
    if of.startswith(("jaxlib", "jax.")) or type(x).__module__ == "nanobind" or get_origin(x):
        return ""  # the last is a name for a type of functions
    try:
        found = list(inspect.signature(x).parameters.values())
    except (TypeError, ValueError):
        return ""
    return shown(found[1:] if bound else found)


def operands(rule: Any) -> str:
    """The parameters of a primitive: operands by their positions, the rest by keyword."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return shown(
        p.replace(kind=inspect.Parameter.POSITIONAL_ONLY) if p.kind in positional else p
        for p in inspect.signature(rule).parameters.values()
    )


def shown(parameters: Any) -> str:
    """Parameters, without their annotations; defaults that are no plain values are `...`."""
    plain = [
        p.replace(annotation=p.empty, default=p.default if settled(p) else ...) for p in parameters
    ]
    return str(inspect.Signature(plain)).replace("Ellipsis", "...")


def settled(p: inspect.Parameter) -> bool:
    """Whether a parameter has no default, or one that is written the same everywhere."""
    return p.default is p.empty or type(p.default) in PLAIN


# What changed


class Change(NamedTuple):
    """What became of a name, and the step of PLUGIN_API that it asks for."""

    step: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"{STEPS[self.step]}: {self.name}: {self.text}"


def read(text: str) -> tuple[tuple[int, ...], dict[str, str]]:
    """The version that a snapshot is of, and its lines by name."""
    head, _, *rows = text.splitlines()
    api = tuple(map(int, head.removeprefix(HEAD).split(".")))
    return api, dict(row.split(": ", 1) for row in rows)


def changes(before: dict[str, str], now: dict[str, str]) -> list[Change]:
    """What changed between two snapshots, in the order of names."""
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None:
            found.append(Change(MINOR, name, f"added, {new}"))
        elif new is None and name not in GIVEN_BY_JAX:
            found.append(Change(MAJOR, name, f"removed, was {old}"))
        elif new is not None and old != new:
            found.append(Change(step(old, new), name, f"was {old}, and is {new}"))
    return found


def step(old: str, new: str) -> int:
    """The step that a changed line asks for: minor if whoever wrote for the old one is served."""
    (what, params, traits), (now, more, gained) = taken_apart(old), taken_apart(new)
    if not served(what) <= served(now) or not {*traits.split()} <= {*gained.split()}:
        return MAJOR
    return MINOR if serves(params, more) else MAJOR


def taken_apart(line: str) -> tuple[str, str, str]:
    """A description as what it is, its parameters, and its traits."""
    before, sign, rest = line.partition("(")
    params, _, after = rest.rpartition(")")
    return before, sign + params + (")" if sign else ""), after.removeprefix(" is ")


def served(what: str) -> set[str]:
    """What a name is; for a primitive that of each name whose users it serves."""
    name, *former = what.split(" formerly ")
    return {name, *(f"primitive {n}" for n in former)}


def serves(old: str, new: str) -> bool:
    """Whether every call that the old parameters take means the same with the new ones."""
    if old == new or not old:
        return True
    if not new:
        return False
    a, b = (ast.parse(f"def f{text}: ...").body[0].args for text in (old, new))  # type: ignore
    for kind in ("vararg", "kwarg"):
        if getattr(a, kind) and not getattr(b, kind):
            return False
    mine, others = by_position(a), by_position(b)
    for i, (name, default) in enumerate(mine):
        if i >= len(others):
            return False
        if name and others[i][0] != name or not keeps(default, others[i][1]):
            return False
    words, more = named(a), {**dict(others), **named(b)}
    if any(name not in more or not keeps(d, more[name]) for name, d in words.items()):
        return False
    new_ones = [d for name, d in others[len(mine) :] if name not in words]
    new_ones += [d for name, d in named(b).items() if name not in words]
    return None not in new_ones


def by_position(args: ast.arguments) -> list[tuple[str, str | None]]:
    """Parameters that may be given by position: name ("" if only by position) and default."""
    both = [("", p) for p in args.posonlyargs] + [(p.arg, p) for p in args.args]
    defaults = [None] * (len(both) - len(args.defaults)) + [ast.unparse(d) for d in args.defaults]
    return [(name, default) for (name, _), default in zip(both, defaults)]


def named(args: ast.arguments) -> dict[str, str | None]:
    """Parameters that may be given by keyword only, with their defaults."""
    values = [None if d is None else ast.unparse(d) for d in args.kw_defaults]
    return dict(zip([p.arg for p in args.kwonlyargs], values))


def keeps(old: str | None, new: str | None) -> bool:
    """Whether a default is the same, or there is one where there was none."""
    return old is None or old == new


def last_release() -> str | None:
    """The snapshot of the last release of core; None if that has none.

    Raises LookupError in a clone that lacks its commit.
    """
    rows = tomllib.loads((ROOT / "releases.toml").read_text(encoding="utf-8"))["release"]
    cores = [r for r in rows if r["package"] == "plait-core"]
    commit = max(cores, key=lambda r: tuple(map(int, r["version"].split("."))))["commit"]
    git = lambda *args: subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
    if git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
        raise LookupError(f"this clone does not have the commit {commit}")
    found = git("show", f"{commit}:{SNAPSHOT.relative_to(ROOT).as_posix()}")
    return None if found.returncode else found.stdout


def main(write: bool) -> None:
    """Write the snapshot, or tell what changed since the last release."""
    if write:
        SNAPSHOT.write_text(snapshot(), encoding="utf-8")
        return
    before = last_release()
    if before is None:
        print("the last release of core has no snapshot")
    else:
        print(*changes(read(before)[1], read(snapshot())[1]), sep="\n")


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
