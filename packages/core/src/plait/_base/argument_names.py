"""Names of the parts of a call's arguments, as the function that users wrote names them.

Invariant: a name is computed only for a message; a function without a readable signature gives the
position instead.
"""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from operator import index
from types import FrameType, TracebackType
from typing import Any

from .source import calls_of_arrays, code_of, of_arrays, of_machinery

__all__ = [
    "Namer", "argument_path", "name_given", "names_at", "names_in_call", "names_of_arguments",
    "names_of_value", "numbers_of", "parameter_names",
]  # fmt: skip

Namer = Callable[[str], str]
"""A function that returns the name, with backticks, of a part with a path such as "[1]['w']"."""

_EITHER, _POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY
_ENTRY = re.compile(r"\[(\d+)\]")
_KEY = re.compile(r"\['([^']*)'\]")


def argument_path(path: str, f: Callable[..., Any] | tuple[str, ...] | None = None) -> str:
    """Return a path in (args, kwargs) as the body of `f` would write it.

    Without `f`, or if the path leads to no parameter, positional arguments are `args[0]`.

    >>> argument_path("[0][1]['w'][0]", lambda state, params: state)
    "params['w'][0]"
    >>> argument_path("[0][1]"), argument_path("[1]['lr']")
    ('args[1]', 'lr')
    """
    side, rest = path[:3], path[3:]
    if side == "[1]":
        return _KEY.sub(r"\1", rest, count=1)
    found = _ENTRY.match(rest)
    if side != "[0]" or found is None:
        return "args" + rest if side == "[0]" else path
    return _positional(int(found[1]), f) + rest[found.end() :]


def names_in_call(f: Callable[..., Any] | tuple[str, ...] | None) -> Namer:
    """Return the names of the parts of (args, kwargs) of a call of `f`."""
    return lambda path: f"argument `{argument_path(path, f)}`"


def names_of_arguments(f: Any) -> Namer:
    """Return the names of the parts of a tuple of all positional arguments of `f`."""
    return lambda path: f"argument `{argument_path('[0]' + path, f)}`"


def names_at(f: Callable[..., Any], positions: Sequence[int]) -> Namer:
    """Return the names of the parts of a tuple of the arguments of `f` at these positions."""

    def name(path: str) -> str:
        found = _ENTRY.match(path)
        assert found is not None  # a path leads into the tuple
        return names_of_arguments(f)(f"[{positions[int(found[1])]}]{path[found.end() :]}")

    return name


def names_of_value(name: str) -> Namer:
    """Return the names of the parts of a value that is called `name`."""
    return lambda path: f"`{name}{path}`"


def name_given(x: object, trace: TracebackType | None = None) -> str:
    """Return the name that an object has in the array function which the user's code has called:
    `axis`, or `arrays[1]`, or "x1` or `x2" for one that was given twice; "" if it has none there.

    It is read from the frames of the call that is under way, outermost first, so that functions
    need not hand on the names of their arguments.

    Args:
      x: the object.
      trace: frames of the call that have ended already: an error went through them.
    """
    calls = calls_of_arrays(trace)
    for frame in calls:
        code = frame.f_code
        if frame is calls[0] and code.co_name.startswith("__"):
            continue  # an operator
        if frame is not calls[0] and of_machinery(code.co_filename):
            continue
        names = [name for parameter in _parameters(frame) for name in _places(x, *parameter)]
        if names:  # of many that are None, it is the first that needs a value
            return names[0] if x is None else "` or `".join(dict.fromkeys(names))
    made_of = x if isinstance(x, tuple) and len(x) < 32 else ()  # a shape of several arguments
    others = [name_given(y, trace) for y in made_of if not isinstance(y, int)]
    return next(filter(None, others), "")


def _places(x: object, name: str, given: Any) -> list[str]:
    """Return the names of the places of an object in the value of a parameter."""
    if given is x:
        return [name]
    inside = given if isinstance(given, list | tuple | str) else ()
    return [f"{name}[{i}]" for i, y in enumerate(inside) if y is x]


def _parameters(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the parameters of a public function that is running.

    A wrapper takes whatever it is given; the parameters are those of the array function in it.
    """
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    several, more = (bool(code.co_flags & f) for f in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS))
    names = code.co_varnames[: count + several + more]
    own = {name: frame.f_locals[name] for name in names if name in frame.f_locals}
    wrapped = _wrapped(frame) if several and len(own) == len(names) else None
    if wrapped is not None:
        args = [*[own[name] for name in names[: code.co_argcount]], *own[names[count]]]
        with contextlib.suppress(TypeError, ValueError):  # its arguments do not fit
            signature = inspect.signature(wrapped)
            found = signature.bind_partial(*args, **own[names[-1]] if more else {})
            yield from found.arguments.items()
    elif several and not more:
        yield from own.items()
    for name in names[:count]:
        if name in own:
            yield name, own[name]


def _wrapped(frame: FrameType) -> Any:
    """Return the array function that a running wrapper calls, or None."""
    for name in ("function", "f"):
        f = frame.f_locals.get(name)
        code = code_of(f)
        if code is not None and of_arrays(code.co_filename):
            return f
    return None


def parameter_names(f: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the positional arguments of `f` that are not static, the last perhaps
    with a star; all namers take them in place of `f`."""
    try:
        parameters = [*inspect.signature(f).parameters.values()]
    except (TypeError, ValueError):
        return ()
    static, _ = getattr(f, "__plait_static__", ((), None))
    plain = [p.name for p in parameters if p.kind in (_EITHER, _POSITIONAL)]
    more = [f"*{p.name}" for p in parameters if p.kind is p.VAR_POSITIONAL]
    return tuple([name for i, name in enumerate(plain) if i not in static] + more)


def _positional(i: int, f: Callable[..., Any] | tuple[str, ...] | None) -> str:
    """Return the name of positional argument `i`, or `args[i]`."""
    if isinstance(f, tuple):
        last = len(f) - 1
        if f and i >= last and f[-1].startswith("*"):
            return f"{f[-1][1:]}[{i - last}]"
        return f[i] if i <= last else f"args[{i}]"
    i = _among_all(i, f)
    try:
        parameters = [] if f is None else [*inspect.signature(f).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    for n, p in enumerate(parameters):
        if p.kind is p.VAR_POSITIONAL and n <= i:
            return f"{p.name}[{i - n}]"
        if n == i and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            return p.name
    return f"args[{i}]"


def _among_all(i: int, f: Callable[..., Any] | None) -> int:
    """Return the position among all arguments of the i-th that is not static."""
    static, _ = getattr(f, "__plait_static__", ((), None))
    for n in sorted(static):
        i += n <= i
    return i


def numbers_of(given: Any) -> tuple[int, ...]:
    """Return the numbers of arguments that a user gives as one number or several, numpy's too."""
    try:
        return (index(given),)
    except TypeError:
        return tuple([index(n) for n in given])
