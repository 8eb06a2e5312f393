"""Runs of compiled programs: what Plait does around the runtime's call, where a program needs it.

Each function here returns a version of `run`, a function of buffers.  `executables.bound` chooses
among them.

Invariant: two programs with collectives run in the same order on all their devices.  Memory that a
program may write to is given to it once.
"""

import weakref
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from .. import events
from .._base import jaxlib_api, lazy
from .._base.errors import RuntimeRefusal
from .._core.array import failure
from .._core.buffers import move
from .._core.processes import Flight, expect_present, explained, in_flight
from .._types.avals import Placed
from .module import SMALL

__all__ = [
    "as_flight", "behind_flights", "brought", "caught", "completed", "each_once", "fronted",
    "in_turn", "moving", "watched",
]  # fmt: skip

_turn = RLock()
_running: list = []
"""The token of the last run on several virtual devices, unless a thread has waited for it."""


def in_turn(run: Callable, done: bool) -> Callable:
    """Return `run` for several virtual devices of one host; it waits for the last such run first.

    These devices share a few threads.  In a collective, each device of a run waits for the others
    on its thread.  Two runs at once could occupy all threads with waiting devices, while the
    devices that they wait for get no thread: a deadlock.  Hence only one such run at a time, of any
    program and Python thread.  Runs in which no device waits for another need no such care.
    If `done`, `run` returns only when the program is complete, so no later run has to wait for it.
    """
    expect_turn = lazy.later("_xla.nesting").expect_turn

    def taken(bufs: list[Any]) -> Any:
        expect_turn()
        with _turn:
            if in_flight:
                _wait_for_others()
            while _running:  # inlined from `_wait_for_others` to save a Python call
                try:
                    _running.pop().block_until_ready()
                except jaxlib_api.RuntimeFailure:
                    pass
            if done:
                return run(bufs)
            results = run(bufs, with_tokens=True)
            _running.append(results.consume_token())
            return results

    return taken


def _wait_for_others() -> BaseException | None:
    """Wait for the last run on several devices; return the error of a flight that failed, if any.

    `_turn` is held.
    """
    error = None
    while in_flight:
        in_flight[-1].finish()
        error = in_flight.pop().error
    while _running:
        try:
            _running.pop().block_until_ready()
        except jaxlib_api.RuntimeFailure:  # reading its results raises the error
            pass
    return error


_QUEUE = 16
"""The most flights at once on accelerators: each has a thread that waits for it."""


def as_flight(
    run: Callable, done: bool, of: frozenset[int], one_by_one: bool, began: Callable[[], None]
) -> Callable:
    """Return `run` for devices of these processes, which calls `began()` first.

    With `one_by_one`, it begins when the last such run is complete.  CPUs need this: two programs
    at once might run their collectives in another order elsewhere.  After a failed collective, the
    bytes of the next one would be read as its own.
    """
    expect_turn = lazy.later("_xla.nesting").expect_turn

    def taken(bufs: list[Any]) -> Any:
        if one_by_one:
            expect_turn()
        with _turn:
            expect_present(of)
            if one_by_one:
                error = _wait_for_others()
                found = explained(error) if isinstance(error, jaxlib_api.RuntimeFailure) else None
                if found is not None:
                    raise found
                expect_present(of)
            elif len(in_flight) >= _QUEUE:
                in_flight[0].finish()
                in_flight[:] = [f for f in in_flight if not f.landed.is_set()]
            began()
            if done:
                return _flown(run, bufs, of)
            results = run(bufs, with_tokens=True)
            in_flight.append(Flight(of, results.consume_token().block_until_ready))
            return results

    return taken


def completed(run: Callable) -> Callable:
    """Return `run`, which returns when the program is complete."""

    def completed(bufs: list[Any]) -> Any:
        results = run(bufs, with_tokens=True)
        results.consume_token().block_until_ready()
        return results

    return completed


def _flown(run: Callable, bufs: list[Any], of: frozenset[int]) -> Any:
    """Run a program that blocks until it is complete, as a flight whose wait can end early."""
    out: list[Any] = []
    flight = Flight(of, lambda: out.append(run(bufs)))
    in_flight.append(flight)
    flight.finish()
    in_flight.remove(flight)
    if flight.error is not None:
        raise flight.error
    return out[0]


def behind_flights(run: Callable) -> Callable:
    """Return `run` for one device of a process among several.

    It raises if a run before it will not end, since it would wait behind that run forever.
    """

    def taken(bufs: list[Any], **how: object) -> Any:
        for flight in in_flight:
            found = flight.loss()
            if found is not None:
                raise found
        return run(bufs, **how)

    return taken


def each_once(run: Callable, donated: Sequence[int], constants: int) -> Callable:
    """Return `run` for several devices, which refuses to use donated memory twice.

    On several devices the runtime would end the process in this case.  Arrays assembled from pieces
    of others share memory too, so memory addresses are compared, not arrays.
    """

    def checked(bufs: list[Any]) -> Any:
        taken: dict[Any, int] = {}
        for i in donated:
            for place in _places(bufs[i]):
                if taken.setdefault(place, i) != i:
                    raise used_twice(taken[place], i)
        for i, b in enumerate(bufs):
            if i not in given:
                for place in _places(b):
                    if place in taken:
                        raise used_twice(taken[place], i)
        return run(bufs)

    def used_twice(*numbers: int) -> RuntimeRefusal:
        first, other = [
            f"array {i}, which the function closes over,"
            if i < constants
            else f"argument {i - constants}"
            for i in numbers
        ]
        return RuntimeRefusal(
            f"the memory of {first} is donated, and {other} uses it too (arguments are counted "
            "from 0, one for each array in trees, without static ones)",
            fix="give the array once, or a copy of it: x.copy()",
        )

    given = frozenset(donated)
    return checked


def _places(buf: Any) -> list[tuple[int, int]]:
    """Return where the pieces of an array begin, each on its device.

    An array without elements has no memory, but the runtime accepts it only once; its identity
    stands for its address.
    """
    if buf.is_deleted():
        return []
    if not buf.aval.size:
        return [(-1, id(buf))]
    return [(k, piece.unsafe_buffer_pointer()) for k, piece in enumerate(buf._arrays)]


def fronted(run: Callable, front: list) -> Callable:
    def fronted(bufs: list[Any]):
        try:
            return run(front + bufs)
        except jaxlib_api.RuntimeFailure as e:  # the caller checks only its own buffers
            raise failure(e, front) if any(b.is_deleted() for b in front) else e from None

    return fronted


_copies: dict[int, tuple[Any, dict]] = {}
"""Copies of small arrays of the default place by number, for as long as the originals live."""


def brought(buf: object, key: Placed) -> Any:
    """Return a copy of an array of the default place, made when it is first needed there.

    The same small arrays (a constant, a learning rate) go to the same devices at each call, so
    their copies are kept.  Copies of larger arrays, which the compiler shards, would occupy memory
    as long as the original lives, so these are moved at each call.  The original is held weakly,
    and an id that Python has reused does not count as a hit.
    """
    laid = key.aval.physical
    if laid.size * laid.dtype.itemsize > SMALL:
        return _carried(buf, key)
    n = id(buf)
    held = _copies.get(n)
    if held is None or held[0]() is not buf:
        held = _copies[n] = weakref.ref(buf, lambda _, store=_copies: store.pop(n, None)), {}
    copy = held[1].get(key.placement)
    if copy is None or copy.is_deleted():
        copy = held[1][key.placement] = _carried(buf, key)
    return copy


def _carried(buf: object, key: Placed) -> Any:
    events.happened("transfer", key)
    return move(buf, key)


def moving(run: Callable, stay: Sequence[tuple[int, Placed, bool]]) -> Callable:
    """Return `run` for arrays of the default place, which it copies or divides over the devices.

    The program may write to donated operands, so a donated array gets a fresh copy.
    """

    def moved(bufs: list[Any]):
        bufs = list(bufs)
        for i, key, donated in stay:
            bufs[i] = _carried(bufs[i], key) if donated else brought(bufs[i], key)
        return run(bufs)

    return moved


def caught(f: Any, failures: list, divided: bool) -> Callable:
    """Return `f`, which records its exceptions in `failures`: the runtime keeps only their text.

    On several devices the program goes on with zeros, without further callbacks.  If one device
    stopped, the others would wait for it in the next collective forever.
    """

    def called(*xs):
        if divided and failures:
            return f.instead(*xs)
        try:
            return f(*xs)
        except BaseException as e:
            failures.append(e)
            if divided:
                return f.instead(*xs)
            raise

    return called


def watched(run: Callable, failures: list, divided: bool) -> Callable:
    """Return `run` for programs with side effects, which waits until these have happened.

    An exception of a callback is raised itself, instead of the runtime's text of it.
    """

    def watched(bufs):
        if divided:  # an interrupted run may have left failures
            failures.clear()
        try:
            results = run(bufs, with_tokens=True)
            results.consume_token().block_until_ready()
        except jaxlib_api.RuntimeFailure as e:
            if not failures:
                raise failure(e, bufs) from None
            raise first_failure() from None
        if divided and failures:
            raise first_failure()
        return results

    def first_failure():
        error = failures[0]
        failures.clear()
        return error

    return watched
