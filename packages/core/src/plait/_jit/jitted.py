"""jit: a function that is staged once per argument types, and looks up later calls.

Invariant: a jitted function looks up a call by the form of the call, the dispatch keys of its
arrays and the values of its static arguments, and nothing else.  It never reads the values of
arrays.
"""

# pyright: reportPrivateUsage=false
# (arrays are unpacked and assembled here without a call: see `plait._core.array`)

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from .._base.errors import ArgumentError
from .._base.jaxlib_api import EFFORTS, RuntimeFailure
from .._base.source import where_defined
from .._base.tracebacks import border, leaving
from .._base.wrapping import offer, wraps
from .._core.array import DONATED_TWICE, Array, failure
from .._core.buffers import expect_platform
from .._core.interpreter import GROUND, current
from .._plugins.metadata import resolve
from .._xla.tiers import Options, expect_tier
from .calls import JittedState
from .placements import expect_placements, placed
from .roles import role, roles_of
from .signatures import name_shared

if TYPE_CHECKING:  # at run time they are imported at the first use
    from .stages import Lowered, Staged

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Jitted(Protocol[P, R_co]):
    """The type of jitted functions, for annotations.

    It has the parameters and the result of the original function, and methods to inspect it without
    running it.

    Arguments of `trace`, `lower` and `eval_shape` may be ShapeDtypeStructs instead of arrays.

    >>> import plait
    >>> f = plait.jit(lambda x: x * 2)
    >>> f.eval_shape(plait.ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    __name__: str

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function that was jitted."""
        ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function, which is compiled at the first call for each set of types."""
        ...

    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> "Jitted[P, R_co]": ...
    @overload
    def __get__(
        self: "Jitted[Concatenate[Any, Q], R_co]", instance: object, owner: Any = None, /
    ) -> Callable[Q, R_co]: ...

    def trace(self, *args: Any, **kwargs: Any) -> "Staged":
        """Stage the function for the types of these arguments, and return its program."""
        ...

    def lower(self, *args: Any, lowering_platforms: Any = None, **kwargs: Any) -> "Lowered":
        """Stage the function for the types of these arguments, and return it as StableHLO.

        The platform is that of this process, or those in `lowering_platforms`.
        """
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of results for the types of these arguments, as ShapeDtypeStructs."""
        ...

    def clear_cache(self) -> None:
        """Drop all traces and executables of this function."""
        ...


class JitOptions(TypedDict, total=False):
    """The options of `jit`, for its two signatures."""

    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    in_shardings: Any
    out_shardings: Any
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None
    tier: Literal["full", "fast", "both"] | None


@overload
def jit(fun: Callable[P, R], **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None, **options: Unpack[JitOptions]
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@border
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    in_shardings: object = None,
    out_shardings: object = None,
    keep_unused: bool = False,
    device: object = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    tier: Literal["full", "fast", "both"] | None = None,
) -> Callable[..., Any]:
    """Compile `fun`: its Python runs once per argument types and static values.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are not arrays: hashable values, for each of
        which `fun` is compiled anew.  One is derived from the other by the signature.
      donate_argnums, donate_argnames: arguments whose memory results may take; they are deleted.
      in_shardings, out_shardings: placements of arguments and of results, or tree prefixes of
        them; None leaves the choice open.  Arguments are moved there, and must be given by
        position; an argument that was placed on purpose must already have that placement.
      keep_unused: has no effect: arguments that `fun` does not use are kept in what `lower`
        returns, and calls leave them out where that is faster.
      device: the device to which arguments are moved, wherever they were placed, and on which the
        function runs.
      backend: the platform; this process has one.
      inline: staged calls become the operations of `fun` instead of one call.
      compiler_options: names and values of XLA's flags, for this program alone.  They
        have no effect under a transformation, and are refused where another jitted function calls
        `fun`.
      tier: "fast" cuts compile time to a third; the program may run up to three times slower, with
        results that are equal up to rounding.  "both" runs the fast program until a thread has
        compiled the full one.  None: `plait.config.tier`, which is "full".

    Returns:
      A function with `fun`'s signature, and the methods of `plait.stages.Jitted`: `.trace(...)`,
      `.lower(...)`, `.eval_shape(...)`, `.clear_cache()`.

    Raises:
      TypeRule: an argument is not an array and not static, or a static one is not hashable.
      ArgumentError: an argument has two roles, the compiler refuses one of its options
        (RuntimeRefusal), or a function with such options is part of another program.
      TreeMismatch: something in `in_shardings` or `out_shardings` is not a placement.
      PlacementError: this process has no such backend, or an argument was placed elsewhere.
      UnexpectedTracerError, ConcretizationError: see their documentation.

    >>> import plait
    >>> plait.jit(lambda x: x * 2 + 1)(3.0)
    Array(7., dtype=float32, weak_type=True)
    """
    if fun is None:
        given = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **given)
    _expect_function(fun)
    static = role(fun, static_argnums, static_argnames, "static")
    donate = role(fun, donate_argnums, donate_argnames, "donate")
    if backend is not None:
        expect_platform(backend)
        if not (device is None and in_shardings is None and out_shardings is None):
            raise ArgumentError(
                "jit was given backend, and device or shardings, which say where it runs, too",
                fix="leave backend out",
            )
    options = Options(flags(compiler_options), expect_tier(tier))
    if device is not None and in_shardings is not None:
        raise ArgumentError("jit was given device and in_shardings", fix="give one of them")
    expect_placements(in_shardings, "in_shardings")
    expect_placements(out_shardings, "out_shardings")
    if device is not None:
        there = resolve("SingleDeviceSharding")(device)
        in_shardings = there.from_anywhere()
        if out_shardings is None:  # a function without arguments runs there, too
            out_shardings = there
    f = fun if out_shardings is None else placed(fun, out_shardings)
    roles = roles_of(static, donate, in_shardings, device is None)
    return _jitted(f, JittedState(f, roles, inline, options))


_RETURNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _expect_function(fun: Any) -> None:
    """Raise ArgumentError for an object that cannot be staged by calling it once."""
    if fun.__class__ in (staticmethod, classmethod):
        kind = fun.__class__.__name__
        raise ArgumentError(
            f"jit was given a {kind}, {fun.__func__.__qualname__}",
            fix=f"write @{kind} above @jit, not below it",
        )
    if not callable(fun):
        raise ArgumentError(
            f"jit needs a function, not {fun!r}", fix="write jit(f), without calling f"
        )
    if fun.__class__ is FunctionType and not fun.__code__.co_flags & _RETURNS_LATER:
        return
    of_itself = fun.__class__ in (FunctionType, functools.partial)
    called: Any = fun if of_itself else fun.__class__.__call__
    for is_kind, kind in (
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.iscoroutinefunction, "a coroutine"),
        (inspect.isasyncgenfunction, "an asynchronous generator"),
    ):
        if is_kind(called):
            raise ArgumentError(
                f"jit needs a function that returns arrays, and {where_defined(fun)} returns "
                f"{kind}",
                fix="return a tuple or a list of the values, or jit the function that makes them",
            )


def flags(compiler_options: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Return compiler flags as a hashable key; raise ArgumentError if they are not a dict."""
    if compiler_options is None:
        return ()
    if not isinstance(compiler_options, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            f"compiler_options must be a dict, not {compiler_options!r}",
            fix="give names and values of XLA's flags, like {'xla_cpu_enable_fast_math': True}",
        )
    for name, kind in EFFORTS.items():
        if not isinstance(compiler_options.get(name, 0), int if kind is int else int | float):
            raise ArgumentError(
                f"the compiler option {name!r} is a number of type {kind.__name__}, not "
                f"{compiler_options[name]!r}",
                fix=f"write {{{name!r}: {kind(0)}}} for the default",
            )
    return tuple(sorted(compiler_options.items()))


# ---- the jitted function -----------------------------------------------------------------------


def _jitted(f: Callable[..., Any], state: JittedState) -> Callable[..., Any]:
    """Return the jitted function of `f` with this state.

    A call of the form of the last one is performed by the function generated for that form.  If
    the last one had flat arrays, calls with flat arrays are looked up here.  Any other call is
    performed by `slow`.
    """

    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if current() is not GROUND:
                return state.staged(args, kwargs)
            way = state.way
            if way is not None:
                return way(args, kwargs)
            if kwargs:
                return state.slow(args, kwargs)
            try:
                if len(args) == 1:
                    (x,) = args
                    bufs = [x._buf]
                    run, handlers, key, build = state.one[x.key]
                else:
                    bufs = [x._buf for x in args]
                    run, handlers, key, build = state.flat[tuple([x.key for x in args])]
            except (KeyError, AttributeError):
                return state.slow(args, kwargs)
            try:
                outs = run(bufs).consume_with_handlers(handlers)
            except RuntimeFailure as e:
                raise failure(e, bufs) from None
            if build is None:
                r = Array()
                r._buf = outs[0]
                r.aval = key.aval
                r.key = key
                return r
            return build(outs)
        except BaseException as e:
            if getattr(e, "what", None) is DONATED_TWICE:
                name_shared(e, args, kwargs, f)  # type: ignore[arg-type]
            leaving(e)
            raise

    wraps(f)(jitted)
    offer(
        jitted,
        trace=state.trace,
        lower=state.lower,
        eval_shape=state.eval_shape,
        clear_cache=state.clear_cache,
        _cache_size=state.cache_size,  # as tests that are written for JAX call it
    )
    return jitted
