"""Functions that stand for others: they have their names, documentation and attributes.

Invariant: wrappers of a function do not get the attributes that Plait keeps on it.  These have
names that begin with `__plait_`, or are offered by a wrapper of Plait.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, MappingProxyType, MethodType
from typing import Any, TypeVar

W = TypeVar("W", bound=Callable[..., Any])


class _Offering(dict[str, Any]):
    """The attributes of a function, some of which wrappers of it must not get.

    `functools.wraps` copies all that it finds here.  A copy of `lower`, for instance, would lower
    the function that is wrapped instead of the wrapper.  So iteration leaves out these attributes
    for `functools.update_wrapper` alone; `dir` and editors see them.
    """

    offered: frozenset[str] = frozenset()

    def keys(self) -> Any:
        asks = sys._getframe(1)
        if asks.f_code is _Offering.__iter__.__code__ and asks.f_back is not None:
            asks = asks.f_back
        hidden = self.offered if asks.f_code is functools.update_wrapper.__code__ else ()
        return [name for name, _ in self.items() if name not in hidden]

    def __iter__(self) -> Iterator[str]:  # `dict.update` asks for `keys` of classes that have this
        return iter(self.keys())

    def __reduce__(self) -> tuple[object, ...]:  # pickles by contents restore every attribute
        return dict, (dict(self.items()),)


def offer(f: Callable[..., Any], **attributes: Any) -> None:
    """Give a function attributes that functions which wrap it do not get."""
    every = _Offering(f.__dict__ | attributes)
    every.offered = frozenset(attributes)
    f.__dict__ = every


def is_offered(f: object, name: str) -> bool:
    """Return whether `offer` gave a function an attribute with this name."""
    own = f.__dict__ if f.__class__ is FunctionType else None
    return own.__class__ is _Offering and name in own.offered  # type: ignore[union-attr]


class Signature(inspect.Signature):
    """The signature of a function, made when it is first read, since making one takes longer than
    wrapping the function."""

    __slots__ = ("_of", "_made")

    def __init__(self, of: Callable[..., Any]):  # the base reads only the two properties
        self._of, self._made = of, None

    @property
    def _own(self) -> inspect.Signature:
        if self._made is None:
            self._made = inspect.signature(self._of)
        return self._made

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        """The parameters of the function, in order."""
        return self._own.parameters

    @property
    def return_annotation(self) -> Any:
        """The annotation of its results."""
        return self._own.return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:
        """Return a signature with some of parameters and return_annotation changed."""
        return self._own.replace(**changes)

    def __reduce__(self) -> Any:
        return Signature, (self._of,)

    def __repr__(self) -> str:
        return repr(self._own)


_PLAIN = (FunctionType, MethodType, functools.partial)
"""Classes that always have a signature; builtins may have none."""


_OF_TYPE = {"__name__": str, "__qualname__": str, "__annotations__": dict, "__type_params__": tuple}
"""Attributes that functions accept with values of one type only."""


def name_of(f: object, default: str | None = None) -> str:
    """Return the name of a function; for an object whose name is not a string `default`, or the
    name of its class."""
    name = getattr(f, "__name__", None)
    return name if isinstance(name, str) else type(f).__name__ if default is None else default


def copy_names(wrapper: W, f: Callable[..., Any]) -> W:
    """Give a wrapper the name and the documentation of `f`, and return it.

    An object that users call may return anything for an attribute: a name that is not a string is
    left out.
    """
    assigned = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(f, name, None), _OF_TYPE.get(name, object))
    ]
    made = functools.update_wrapper(wrapper, f, assigned, updated=())
    if "__qualname__" not in assigned and isinstance(made, FunctionType):
        made.__qualname__ = _title(f)
        if "__name__" not in assigned:
            made.__name__ = made.__qualname__
    return made  # type: ignore[return-value]


def _title(f: Callable[..., Any]) -> str:
    """Return what the `repr` of a wrapper calls an object without a name: partial(g), or its
    class."""
    if isinstance(f, functools.partial):
        inner = getattr(f.func, "__qualname__", None)
        return f"partial({inner if isinstance(inner, str) else _title(f.func)})"
    return type(f).__qualname__


def wraps(f: Callable[..., Any]) -> Callable[[W], W]:
    """Return a decorator like `functools.wraps(f)`, which leaves Plait's own attributes on `f`.

    For callables that are not functions only name, documentation and signature are copied, not the
    contents of the instance.
    """

    def dress(wrapper: W) -> W:
        copy_names(wrapper, f)
        if f.__class__ in _PLAIN or isinstance(getattr(type(f), "__call__", None), FunctionType):  # noqa: B004
            wrapper.__signature__ = Signature(f)  # type: ignore[attr-defined]
        if f.__class__ is FunctionType and f.__dict__:
            for name in f.__dict__:
                own = name.startswith("__plait_") or name == "__wrapped__" or is_offered(f, name)
                if not own:
                    wrapper.__dict__[name] = f.__dict__[name]
        return wrapper

    return dress


def found_by_name(scope: dict[str, Any]) -> None:
    """Let the functions of a module be pickled, which looks them up by their module and name.

    Functions that are made by other functions have the name of the module in which they were
    written, which does not hold them.

    Args:
      scope: the globals of a module that has all names in its `__all__`.
    """
    for name in scope["__all__"]:
        f: Any = scope.get(name)
        if f.__class__ is not FunctionType:
            continue
        home = sys.modules.get(f.__module__)
        if getattr(home, f.__qualname__, None) is not f:
            f.__module__, f.__qualname__ = scope["__name__"], name
