"""A function with one set of static values: what a call of a jitted function is traced as.

Invariant: a version is found by the static values, the donated leaves and, if its traces depend on
surroundings, by these; and by nothing else.
"""

from collections.abc import Callable, Hashable
from typing import Any

from .._base.surroundings import Surroundings, around
from .._xla.tiers import Options
from .caches import CompiledCalls, Traces, kept, make_room
from .roles import DividedCall, not_compared


class Version:
    """A function whose static arguments are bound.

    Args:
      f: the function of the other arguments.
      traces: its traces.
      donated: numbers of the donated flat arguments.
      inline: whether staged calls become the operations of `f`.
      options: flags and tier of the compiler.
      calls: its compiled calls.
      is_apart: whether it serves only calls in the same surroundings.

    `reads` is what the function read besides its arguments (see `purity`), once it was called.

    `depends` says whether a trace depended on its surroundings.  Versions that are apart keep the
    compiled calls of such traces.
    """

    __slots__ = (
        "f", "donated", "inline", "options", "calls", "traces", "is_apart", "depends", "reads",
    )  # fmt: skip

    def __init__(
        self,
        f: Callable[..., Any],
        traces: Traces,
        donated: tuple[int, ...],
        inline: bool,
        options: Options,
        calls: CompiledCalls,
        is_apart: bool = False,
    ):
        self.f, self.traces, self.donated = f, traces, donated
        self.inline, self.options, self.calls = inline, options, calls
        self.is_apart, self.depends = is_apart, False
        self.reads: Any = None

    def clear(self) -> None:
        """Drop all traces and compiled calls."""
        self.calls.forget()
        self.traces.clear()


class Versions:
    """The versions of a jitted function, by static values, donated leaves and surroundings.

    Args:
      f: the function as its user wrote it.
      inline, options: those of the versions.
      is_plain: whether its arguments have no roles.  It then has a version `plain` for calls in any
        surroundings, whose compiled calls all jits of a Python function share.  So writing `jit(f)`
        again in a loop compiles nothing again.
    """

    __slots__ = ("f", "inline", "options", "plain", "_by_key")

    def __init__(self, f: Callable[..., Any], inline: bool, options: Options, is_plain: bool):
        self.f, self.inline, self.options = f, inline, options
        self.plain: Version | None = None
        if is_plain:
            traces = kept(f)
            calls = traces.shared(f, (inline, options), CompiledCalls)
            self.plain = Version(f, traces, (), inline, options, calls)
        self._by_key: dict[tuple[Hashable, Surroundings | None], Version] = {}

    def find(self, call: DividedCall | None) -> Version:
        """Return the version of a call; None stands for any call without roles."""
        key = () if call is None else call.key
        try:
            found = self.plain or self._by_key.get((key, None))
        except Exception as e:
            if call is None:
                raise
            raise not_compared(call.call, self.f, e) from e
        version = found or self._made(key, None, call)
        if not version.depends:
            return version
        here = around()
        return self._by_key.get((key, here)) or self._made(key, here, call)

    def _made(
        self, key: tuple[Hashable, ...], here: Surroundings | None, call: DividedCall | None
    ) -> Version:
        f, donated = (self.f, ()) if call is None else (call.bind(self.f), call.donated)
        traces, calls, is_apart = kept(f), CompiledCalls(), here is not None
        version = Version(f, traces, donated, self.inline, self.options, calls, is_apart)
        make_room(self._by_key)
        self._by_key[key, here] = version
        return version

    def count(self) -> int:
        """Return the number of compiled calls of all versions."""
        plain = () if self.plain is None else (self.plain,)
        return sum([len(v.calls.every) for v in (*plain, *self._by_key.values())])

    def clear(self) -> None:
        """Drop all versions, with their traces and compiled calls."""
        for version in (self.plain, *self._by_key.values()):
            if version is not None:
                version.clear()
        self._by_key.clear()
