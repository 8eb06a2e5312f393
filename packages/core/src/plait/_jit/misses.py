"""Explanations, in words, of why a function is traced again, for `config.explain_cache_misses`.

Each miss is one line of the log `plait`, with the line of the call; it is compared with the closest
earlier trace of the function.

Invariant: this code runs only if the setting is on, and then only when a function is traced; its
records do not keep functions alive.
"""

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from threading import RLock
from typing import Any, cast
from weakref import WeakKeyDictionary

from .._base.argument_names import argument_path
from .._base.freezing import same
from .._base.source import here, hidden, user_line, where_defined
from .._types.avals import Aval
from ..tree import bare_tree, key_paths
from .jittable import jittables

__all__ = ["explain"]

_lock = RLock()
_log = logging.getLogger("plait")
_seen: "WeakKeyDictionary[Any, list[tuple[Any, tuple]]]" = WeakKeyDictionary()
"""Function as its user wrote it -> (static values, key) of each of its last traces."""
_MOST = 64
"""The most traces of one function that are recorded."""


@lru_cache(maxsize=4096)
def _first(code: object) -> list:
    """Return a list, empty at first, for the `id` of the last function with this code that was
    traced."""
    return []


def explain(
    does: str, f: Callable[..., Any], key: tuple[Any, ...], known: Iterable[tuple[Any, ...]]
) -> None:
    """Log why `f` is traced, with the line that calls it.

    Args:
      does: the transformation that traces it, for the text.
      f: the function, which may be a wrapper of the user's.
      key: the cache key of the trace: the tree of the arguments, their types, the settings, the
        named axes, the parts of the arguments that are one, and its surroundings.  The last is None
        if the function does not depend on them.
    """
    static, user = getattr(f, "__plait_static__", None), cast(Any, f)
    while hasattr(user, "__wrapped__") and hidden(user.__code__.co_filename):
        user = user.__wrapped__
    with _lock:  # other threads may trace the same function, and comparing trees runs Python's ==
        try:
            earlier = _seen.setdefault(user, [])
        except TypeError:  # the class has no weak references, or is not hashable
            earlier = []
        earlier += [(static, k) for k in [*known] if not any(same((static, k), e) for e in earlier)]
        why = _why_another(static, key, earlier, f) if earlier else _why_first(user)
        del earlier[: len(earlier) - _MOST]
        earlier.append((static, key))
    _log.warning("%s of %s is traced at %s: %s", does, where_defined(user), user_line(here()), why)


def _why_first(f: Callable[..., Any]) -> str:
    """Return why a function without recorded traces is traced."""
    code = getattr(f, "__code__", None)
    others = _first(code) if code is not None else []
    again = bool(others)
    others[:] = [id(f)]
    if again:
        return (
            "this function was never seen, but another one of the same line was: it is defined "
            "anew each time, in a loop for instance; define it once, outside"
        )
    return "this function was never seen"


def _why_another(
    static: tuple[dict[str, Any], ...] | None,
    key: tuple,
    earlier: list[tuple[Any, tuple]],
    f: Callable[..., Any],
) -> str:
    """Return how a call differs from the most similar earlier trace.

    Args:
      static: (static values by position, those by name) of the call; None without any.
      key: the key of the call.
      earlier: static values and keys of the earlier traces.
      f: the function.
    """
    found = [(old[1][0] != key[0], _differences(static, key, *old, f)) for old in reversed(earlier)]
    _, closest = min(found, key=lambda d: (d[0], sum(map(_kinds, d[1]))))
    return "; ".join(closest) or (
        "such a call was traced before, but that trace was not kept: it was cleared, or used "
        "values of a transformation under way"
    )


def _kinds(difference: str) -> int:
    """Return how many kinds of difference a text mentions ("shape and dtype": two)."""
    return 1 + difference.partition("(")[0].count(" and ")


def _axes(bound: tuple | None) -> str:
    """Return a text for the named axes around a call.

    A star marks axes whose variance is part of types.
    """
    return ", ".join([f"{n!r}: {b.size}{'*' * b.typed}" for n, b in bound or ()]) or "none"


def _differences(
    static: tuple[dict[str, Any], ...] | None,
    key: tuple,
    old_static: tuple[dict[str, Any], ...] | None,
    old: tuple,
    f: Callable[..., Any],
) -> list[str]:
    """Return a text for each thing that differs between a call and an earlier one."""
    about, avals, state, axes, one, around = key
    old_about, old_avals, old_state, old_axes, old_one, old_around = old
    tree, old_tree = bare_tree(about), bare_tree(old_about)
    out = []
    if not same(static, old_static):
        out.append(f"other static values: {_static(static)}, and {_static(old_static)} before")
    if about != old_about:
        out += _structures(tree, old_tree) or ["other keys of dictionaries"]
    elif avals != old_avals:
        paths = key_paths(jittables.opened(tree.unflatten(range(len(avals)))))
        changes = [_change(a, b) for a, b in zip(avals, old_avals)]
        out += [f"{c} of `{argument_path(p, f)}`" for p, c in zip(paths, changes) if c]
    if state is not old_state:
        changed = [(k, a, dict(old_state)[k]) for k, a in state if dict(old_state)[k] != a]
        out += [f"setting {k} is {a!r}, and was {b!r} before" for k, a, b in changed]
    if axes != old_axes:
        out.append(f"other named axes around it: {_axes(axes)}, and {_axes(old_axes)} before")
    if about == old_about and one != old_one:
        out.append("other parts of the arguments are one and the same array")
    if (around or None) != (old_around or None):
        out.append(f"other surroundings: {_named(around)}, and {_named(old_around)} before")
    return out


def _named(around: tuple[tuple[Any, ...], ...]) -> str:
    """Return names and values as a text, or "none"."""
    return ", ".join([f"{name} {value!r}" for name, value in around or ()]) or "none"


def _structures(tree: Any, old: Any) -> list[str]:
    """Return a text for each difference of two trees of (args, kwargs)."""
    (args, kwargs), (old_args, old_kwargs) = tree.children(), old.children()
    names, old_names = kwargs.node_data()[1], old_kwargs.node_data()[1]
    out = []
    if len(args.children()) != len(old_args.children()):
        out.append(
            f"other number of positional arguments: {len(args.children())}, and "
            f"{len(old_args.children())} before"
        )
    elif args != old_args:
        out.append(f"other structure of arguments: {args}, and {old_args} before")
    if names != old_names:
        out.append(f"other keyword arguments: {_listed(names)}, and {_listed(old_names)} before")
    elif kwargs != old_kwargs:
        out.append(f"other structure of keyword arguments: {kwargs}, and {old_kwargs} before")
    return out


def _listed(names: list[str]) -> str:
    """Return names with commas between them, or "none"."""
    return ", ".join(map(str, names)) or "none"


def _change(a: Aval, b: Aval) -> str | None:
    """Return the difference of two types as a text; None if they are the same."""
    if a is b:
        return None
    kinds = [
        kind
        for kind, differs in (
            ("shape", a.shape != b.shape),
            ("dtype", a.dtype != b.dtype),
            ("weak type", a.weak_type != b.weak_type),
        )
        if differs
    ]
    return f"other {' and '.join(kinds)} ({a!r}, and {b!r} before)"


def _static(static: Any) -> str:
    """Return static values (by position, by name) as a text."""
    if static is None:
        return "none"
    by_position, by_name = static
    return ", ".join([f"args[{i}] = {v!r}" for i, v in sorted(by_position.items())]
                     + [f"{k} = {v!r}" for k, v in sorted(by_name.items())])  # fmt: skip
