"""One computation in the actors of a Ray cluster, begun again when one of them dies.

Each actor becomes one process of the computation: it gets the variables of our own launcher, and
calls a function that joins by `plait.distributed.initialize()`.  When an actor or its machine dies,
the others raise PeerLost; then all are replaced, because a process joins a computation only once.

Invariant: when `on_ray` returns or raises, none of its actors and placement groups is left.  Ray is
imported at the first call.
"""

import os
import runpy
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from plait.ext.errors import ArgumentError, border
from plait.ext.plugins import library

from .failures import DistributedError
from .joining import bracketed, start_coordinator
from .launchers import ADDRESS, COUNT, INDEX, LAUNCHED
from .membership import end_by, shutdown
from .world import worlds

__all__ = ["on_ray"]

_PATIENCE = 300.0
"""Seconds for which a coordinator waits for its processes."""
_GRACE = 30.0
"""Seconds that the other actors have to end after one has failed."""
_FITS = 5.0
"""Seconds in which Ray finds room that exists already."""


@border
def on_ray(
    function: Callable[..., Any] | str | Path,
    *arguments: object,
    workers: int,
    resources: Mapping[str, float] | None = None,
    min_workers: int = 1,
    max_failures: int = 3,
    retry_exceptions: bool = False,
    start_timeout: float = 60,
    placement_strategy: str = "PACK",
    runtime_env: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Call a function in each of several actors of a Ray cluster, which compute together.

    The function is what `srun` would start in each process: it calls
    `plait.distributed.initialize()` without arguments, restores the last checkpoint if there is
    one, and trains.  If an actor or its machine dies, all actors are replaced and call the
    function again, on as many workers as the cluster still has room for.  So it must save
    checkpoints where all machines find them, and restore them for any number of devices.

    Args:
      function: a function, which Ray pickles, or the path of a script that each machine has, there
        or in Ray's working directory.
      *arguments: arguments of the function, or the words after the script on its command line.
      workers: the number of actors, each with one process.
      resources: what each actor reserves, in Ray's words: `{"CPU": 4, "GPU": 8}`.  The process
        drives the GPUs that Ray gives its actor.  The default is one CPU.
      min_workers: the smallest number of actors to go on with after a loss.  With the number of
        `workers`, a computation waits for room for all of them instead.
      max_failures: how often to begin again; -1 is without a limit.
      retry_exceptions: whether to begin again after an exception of the function, too.  By default
        it is raised, because it would be raised again.
      start_timeout: seconds to wait for room for all workers.
      placement_strategy: Ray's strategy for placing the actors: "PACK", "SPREAD", "STRICT_PACK" or
        "STRICT_SPREAD".
      runtime_env: Ray's runtime environment of the actors: `{"env_vars": {...}}`.

    Returns the results of the function, in the order of the processes; None for a script.

    Raises the function's exception as Ray raises it.  Raises ArgumentError, before Ray starts,
    for an argument that cannot be meant.  Raises MissingPlugin if Ray is not installed.
    Raises DistributedError if room is missing, after too many losses, or if the function did not
    join the others.

    Example, for two machines with eight GPUs each:
      >>> def train(): ...
      >>> plait.distributed.on_ray(train, workers=2, resources={"GPU": 8})  # doctest: +SKIP
    """
    _check(function, workers, min_workers, max_failures, start_timeout, placement_strategy)
    each = _bundle(resources)
    ray = _ray()
    if not ray.is_initialized():
        ray.init()
    work = function if callable(function) else _Script(str(function), os.getcwd())
    count, failures = workers, 0
    while True:
        least = workers if failures == 0 else min_workers
        group = _Group(ray, count, least, each, placement_strategy, start_timeout)
        try:
            group.start(runtime_env)
            outcome = group.call(work, arguments)
        finally:
            group.stop()
        if outcome.error is not None and not retry_exceptions:
            raise outcome.error
        if not outcome.failed:
            return outcome.values
        failures += 1
        text = "; ".join(outcome.reasons)
        if 0 <= max_failures < failures:
            raise outcome.error or DistributedError(
                f"on_ray lost workers {failures} times, and max_failures is {max_failures}; the "
                f"last time: {text}",
                fix="see the logs of these workers; give a larger max_failures, or -1, to go on",
            )
        print(f"plait: begins again on Ray, after {text}", file=sys.stderr, flush=True)


_STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


def _check(
    function: object,
    workers: int,
    min_workers: int,
    max_failures: int,
    start_timeout: float,
    strategy: str,
) -> None:
    if not callable(function) and not isinstance(function, str | Path):
        raise ArgumentError(
            f"function must be a function or the path of a script, got {function!r}",
            fix='pass the function itself, without calling it, or for instance "train.py"',
        )
    for name, number, least in (
        ("workers", workers, 1), ("min_workers", min_workers, 1), ("max_failures", max_failures, -1)
    ):  # fmt: skip
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ArgumentError(f"{name} is {number!r}", fix=f"give an integer from {least} on")
    if min_workers > workers:
        raise ArgumentError(
            f"min_workers is {min_workers}, and workers is {workers}",
            fix="give a min_workers that is at most workers",
        )
    if not isinstance(start_timeout, int | float) or not start_timeout > 0:
        raise ArgumentError(f"start_timeout is {start_timeout!r}", fix="give a number of seconds")
    if strategy not in _STRATEGIES:
        raise ArgumentError(
            f"placement_strategy is {strategy!r}", fix=f"give one of {', '.join(_STRATEGIES)}"
        )


def _bundle(resources: Mapping[str, float] | None) -> dict[str, float]:
    """Return what each actor reserves; Ray refuses a reservation of nothing."""
    if resources is None:
        return {"CPU": 1}
    for name, amount in resources.items():
        if not isinstance(amount, int | float) or not amount >= 0:
            raise ArgumentError(
                f"resources[{name!r}] is {amount!r}", fix='write for instance {"CPU": 4, "GPU": 8}'
            )
    kept = {name: amount for name, amount in resources.items() if amount > 0}
    return kept or {"CPU": 0.001}


def _ray() -> Any:
    """Import Ray and return it.  Raises MissingPlugin if it is not installed."""
    does = "plait.distributed.on_ray starts actors of Ray"
    library("ray.util.scheduling_strategies", does, "plait-sharding", "ray")
    return library("ray", does, "plait-sharding", "ray")


# ---- in the driver -----------------------------------------------------------------------------


class _Outcome(NamedTuple):
    """The end of one attempt: values, or a text for each worker that failed."""

    values: list[Any]
    reasons: list[str]
    error: Exception | None

    @property
    def failed(self) -> bool:
        return bool(self.reasons)


class _Group:
    """The actors of one attempt, and the room that is reserved for them."""

    def __init__(
        self, ray: Any, most: int, least: int, each: dict[str, float], strategy: str, seconds: float
    ):
        self.ray, self.each = ray, each
        self.actors: list[Any] = []
        self.room, self.count = self._reserve(most, least, strategy, seconds)

    def _reserve(self, most: int, least: int, strategy: str, seconds: float) -> tuple[Any, int]:
        """Return reserved room for `most` workers or, if there is none in time, for fewer."""
        util = self.ray.util
        for count in range(most, least - 1, -1):
            room = util.placement_group([self.each] * count, strategy)
            if room.wait(seconds if count == most else _FITS):
                return room, count
            util.remove_placement_group(room)
        raise DistributedError(
            f"expected room for {least} workers with {self.each} each within {seconds:.0f} s; the "
            f"cluster has {_shown(self.ray.cluster_resources())} in all, and "
            f"{_shown(self.ray.available_resources())} free",
            fix="give fewer workers or smaller resources, or a longer start_timeout if machines "
            "are about to come",
        )

    def start(self, runtime_env: Mapping[str, Any] | None) -> None:
        """Start an actor in each reserved place, those of one machine after each other."""
        placed = self.ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
        kind, left = self.ray.remote(_Worker), dict(self.each)
        options: dict[str, Any] = {
            "num_cpus": left.pop("CPU", 0),
            "num_gpus": left.pop("GPU", 0),
            "resources": left,
            "max_restarts": 0,
            "runtime_env": dict(runtime_env or {}),
        }
        self.actors = [
            kind.options(**options, scheduling_strategy=placed(self.room, k)).remote()
            for k in range(self.count)
        ]

    def call(self, function: Any, arguments: Sequence[Any]) -> _Outcome:
        """Let the actors call a function together; return how they ended."""
        try:
            hosts = self.ray.get([a.host.remote() for a in self.actors], timeout=_PATIENCE)
            first = {host: k for k, host in reversed(list(enumerate(hosts)))}
            order = sorted(range(self.count), key=lambda k: (first[hosts[k]], k))
            self.actors = [self.actors[k] for k in order]
            address = self.ray.get(self.actors[0].listen.remote(self.count), timeout=_PATIENCE)
        except (self.ray.exceptions.RayActorError, self.ray.exceptions.GetTimeoutError) as e:
            return _Outcome([], [f"an actor that did not start ({_first_line(e)})"], None)
        told = {ADDRESS: address, COUNT: str(self.count), LAUNCHED: "1"}
        running = {
            actor.call.remote(function, arguments, told | {INDEX: str(i)}): i
            for i, actor in enumerate(self.actors)
        }
        return self._ended(running)

    def _ended(self, running: dict[Any, int]) -> _Outcome:
        """Wait for all actors; after the first failure the others have a while to end."""
        ends, values = self.ray.exceptions, [None] * self.count
        died = (
            ends.RayActorError, ends.NodeDiedError, ends.WorkerCrashedError, ends.ObjectLostError,
            ends.OutOfMemoryError,
        )  # fmt: skip
        reasons: list[str] = []
        raised: list[tuple[Exception, BaseException]] = []
        end = float("inf")
        while running and time.monotonic() < end:
            left = None if end == float("inf") else max(0.0, end - time.monotonic())
            done, _ = self.ray.wait(list(running), timeout=left)
            for ref in done:
                i = running.pop(ref)
                try:
                    lost, values[i] = self.ray.get(ref)
                except died as e:
                    lost = f"worker {i} died ({_first_line(e)})"
                except ends.RayError as e:  # of the function, or one that Ray cannot bring here
                    cause = getattr(e, "cause", e)
                    raised.append((e, cause))
                    lost = f"worker {i} raised {_first_line(cause)}"
                if lost:
                    reasons.append(lost)
                    end = min(end, time.monotonic() + _GRACE)
        reasons += [f"worker {i} did not end" for i in sorted(running.values())]
        # An error about other processes is the consequence of a loss, where there was one.
        own = [e for e, cause in raised if not isinstance(cause, DistributedError)]
        only = [e for e, _ in raised] if len(raised) == len(reasons) else []
        return _Outcome(values, reasons, next(iter(own or only), None))

    def stop(self) -> None:
        """End all actors, and free their room."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.ray.util.remove_placement_group(self.room)


def _shown(resources: Mapping[str, float]) -> str:
    """Return resources as text, without those that only name machines."""
    kept = {k: v for k, v in sorted(resources.items()) if ":" not in k and "memory" not in k}
    return ", ".join(f"{amount:g} {name}" for name, amount in kept.items()) or "nothing"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


# ---- in an actor -------------------------------------------------------------------------------


class _Script(NamedTuple):
    """A script, and the folder of the driver that its path is relative to."""

    path: str
    folder: str

    def run(self, arguments: Sequence[Any]) -> None:
        """Run the script as the main program.

        Ray may have copied the folder to the working directory of this machine.
        """
        path = Path(self.path)
        found = path.resolve() if path.exists() else Path(self.folder, path)
        sys.argv = [str(found), *map(str, arguments)]
        sys.path.insert(0, str(found.parent))
        runpy.run_path(str(found), run_name="__main__")


class _Worker:
    """An actor, whose process becomes one of the computation."""

    def host(self) -> str:
        """Return the address of this machine."""
        return str(_ray().util.get_node_ip_address())

    def listen(self, count: int) -> str:
        """Start the coordinator on this machine; return its address."""
        host = self.host()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family, backlog=1024) as listener:
            start_coordinator(listener, count, _PATIENCE)
            return f"{bracketed(host)}:{listener.getsockname()[1]}"

    def call(self, function: Any, arguments: Sequence[Any], told: dict[str, str]) -> tuple:
        """Call the function as one process; return why it is lost, or None and its result."""
        os.environ.update(told)
        name = f"worker {told[INDEX]}"
        try:
            value = _called(function, arguments)
        except BaseException as e:
            lost = _lost(name)
            if worlds:
                end_by(worlds[0], e)
            if lost is None:
                raise
            return lost, None
        lost = _lost(name)
        if lost is None and not worlds and told[COUNT] != "1":
            _not_joined(name)
        shutdown()
        return lost, value


def _called(work: Any, arguments: Sequence[Any]) -> Any:
    """Call a function, or run a script."""
    try:
        return work.run(arguments) if isinstance(work, _Script) else work(*arguments)
    except SystemExit as e:  # with which Ray would end the actor, and report no reason
        if e.code not in (None, 0):
            raise RuntimeError(f"exit code {e.code}") from e
        return None


def _lost(name: str) -> str | None:
    """Return the reason if this process cannot compute with the others any more."""
    world = worlds[0] if worlds else None
    if world is None or not (world.lost or world.broken):
        return None
    return f"{name} lost {'; '.join(world.lost.values()) or world.broken}"


def _not_joined(name: str) -> NoReturn:
    raise DistributedError(
        f"{name} has called its function, which did not join the others: each computed alone",
        fix="call plait.distributed.initialize() at the beginning of the function",
    )
