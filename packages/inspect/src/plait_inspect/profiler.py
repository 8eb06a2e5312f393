"""Profiles of computations: traces by the runtime's profiler, memory, and costs by source line.

Invariant: nothing is recorded outside of a recording, and executables carry source lines only in
one, or with the setting `source_lines`.
"""

import functools as _functools
import gzip as _gzip
import os as _os
from collections.abc import Callable, Generator
from contextlib import ExitStack as _ExitStack
from contextlib import contextmanager
from pathlib import Path as _Path
from typing import Any, TypeVar, overload

from plait import config as _config
from plait import effects_barrier as _effects_barrier
from plait.ext import profiling as _profiling
from plait.ext.errors import ArgumentError, PlaitError, border
from plait.ext.surface import advise as _advise
from plait.ext.trace import name_of as _name_of
from plait.ext.trace import wraps as _wraps

from .line_costs import LineCost, LineTable, by_line
from .trace_files import with_lines as _with_lines

__all__ = [
    "LineCost", "LineTable", "StepTraceAnnotation", "TraceAnnotation", "annotate",
    "annotate_function", "by_line", "device_memory_profile", "save_device_memory_profile",
    "start_server", "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class _Running:
    """The session that records now, and the server, of this process."""

    session: Any = None
    folder: str = ""
    settings: Any = None
    perfetto: bool = True
    server: Any = None


@border
@contextmanager
def trace(
    log_dir: str | _os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = True,
    profiler_options: Any = None,
    *,
    lines: bool = True,
) -> Generator[None, None, None]:
    """Record what happens in the `with` block, and write it to a folder.

    TensorBoard and XProf open the folder.  `perfetto_trace.json.gz` in it is opened by
    https://ui.perfetto.dev: its operations carry the line of the user's file as `source`.

    Args:
      log_dir: the folder; a subfolder is made for each recording.
      create_perfetto_link: must be False; Plait opens no server.
      create_perfetto_trace: whether to write the file for Perfetto.
      profiler_options: `plait.profiler.ProfileOptions`, to record more or less.
      lines: whether jitted functions that are called in the block are compiled with names and
        source lines.  The first call of each compiles it again, so call it twice, or call it
        before within `plait.config(source_lines=True)`.

    Raises ArgumentError if another recording is under way.

    >>> import plait, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with plait.profiler.trace(folder):
    ...         _ = plait.jit(lambda x: x + 1)(1.0)
    ...     sorted(p.name.partition(".")[2] for p in Path(folder).rglob("*.gz"))
    ['json.gz', 'trace.json.gz']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options, lines=lines)
    try:
        yield
    finally:
        stop_trace()


@border
def start_trace(
    log_dir: str | _os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = True,
    profiler_options: Any = None,
    *,
    lines: bool = True,
) -> None:
    """Start to record, until `stop_trace`; see `trace`."""
    if _Running.session is not None:
        raise ArgumentError(
            f"start_trace: a recording to {_Running.folder} is under way",
            fix="end it first, by plait.profiler.stop_trace()",
        )
    if create_perfetto_link:
        raise ArgumentError(
            "start_trace: create_perfetto_link=True needs a server, which Plait does not open",
            fix="open perfetto_trace.json.gz in https://ui.perfetto.dev",
        )
    settings = _ExitStack()
    if lines:
        settings.enter_context(_config(source_lines=True))
    try:
        _Running.session = _profiling.session(True, profiler_options)
    except BaseException:
        settings.close()
        raise
    _Running.folder, _Running.settings = _os.fspath(log_dir), settings
    _Running.perfetto = create_perfetto_trace


@border
def stop_trace() -> None:
    """Write the recording that `start_trace` began to its folder.

    Raises ArgumentError if nothing is recorded.
    """
    session, folder = _Running.session, _Running.folder
    if session is None:
        raise ArgumentError(
            "stop_trace: no recording is under way", fix="begin one: plait.profiler.start_trace"
        )
    _Running.session = None
    try:
        _effects_barrier()
        session.stop_and_export(folder)
    finally:
        _Running.settings.close()
    if _Running.perfetto:
        _write_perfetto(folder)


def _write_perfetto(folder: str) -> None:
    """Write the newest recording in a folder for Perfetto, with the lines of operations."""
    found = sorted(_Path(folder).glob("plugins/profile/*/*.trace.json.gz"))
    if found:
        newest = max(found, key=lambda p: p.stat().st_mtime_ns)
        events = _gzip.decompress(newest.read_bytes())
        texts = _profiling.live_texts()
        with _gzip.open(newest.with_name("perfetto_trace.json.gz"), "wb") as file:
            file.write(_with_lines(events, texts))


class annotate:
    """A name for what happens in a `with` block, or in a function, in profiles.

    Args:
      name: the name; as a decorator without arguments, that of the function.
      data: further values that are shown: `annotate("step", number=3)`.

    >>> import plait
    >>> with plait.profiler.annotate("load", rows=3):
    ...     pass
    >>> @plait.profiler.annotate
    ... def step(x):
    ...     return x
    >>> step(3)
    3
    """

    name: str
    data: dict[str, object]

    def __new__(cls, name: str, **data: object) -> Any:
        """Return a context and decorator; or, for a function, the function annotated."""
        made = super().__new__(cls)
        if isinstance(name, str) or not callable(name):
            return made
        made.__init__(_name_of(name), **data)
        return made(name)

    def __init__(self, name: str, **data: object):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"annotate: the name must be a str, not {name!r}", fix='write annotate("step")'
            )
        self.name, self.data = name, data
        self._open: list[Any] = []

    def __enter__(self) -> "annotate":
        """Begin the block."""
        mark = _profiling.profiler_mark(self.name, **self.data)
        mark.__enter__()
        self._open.append(mark)
        return self

    def __exit__(self, *error: Any) -> None:
        """End the block."""
        self._open.pop().__exit__(*error)

    def __call__(self, f: F) -> F:
        """Return `f` with its calls under this name."""

        @_wraps(f)
        def function(*args: Any, **kwargs: object) -> Any:
            with _profiling.profiler_mark(self.name, **self.data):
                return f(*args, **kwargs)

        return function  # type: ignore[return-value]


TraceAnnotation = annotate
"""`annotate` under the name that JAX has for it."""


class StepTraceAnnotation(annotate):
    """A name for one step of training: TensorBoard shows times by `step_num`.

    >>> import plait
    >>> with plait.profiler.StepTraceAnnotation("train", step_num=1):
    ...     pass
    """

    def __init__(self, name: str, **data: object):
        super().__init__(name, _r=1, **data)


@overload
def annotate_function(func: F, name: str | None = None, **data: object) -> F: ...
@overload
def annotate_function(
    func: None = None, name: str | None = None, **data: object
) -> Callable[[F], F]: ...
def annotate_function(func: Any = None, name: str | None = None, **data: object) -> Any:
    """Return `func` with its calls under a name in profiles; without it, a decorator."""
    if func is None:
        return _functools.partial(annotate_function, name=name, **data)
    return annotate(name or _name_of(func), **data)(func)


# ---- memory ------------------------------------------------------------------------------------


@border
def device_memory_profile(backend: str | None = None) -> bytes:
    """Return the arrays and executables in device memory, by the Python stack that made them, in
    the format of pprof (`go tool pprof`).

    `backend` is accepted for compatibility: a process has one.
    """
    del backend
    return _gzip.compress(_profiling.heap_profile())


@border
def save_device_memory_profile(
    filename: str | _os.PathLike[str], backend: str | None = None
) -> None:
    """Write `device_memory_profile` to a file."""
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


# ---- a server ----------------------------------------------------------------------------------


@border
def start_server(port: int) -> Any:
    """Start a server from which TensorBoard records profiles of this process, and return it."""
    if _Running.server is not None:
        raise PlaitError(
            "start_server: this process has a profiler's server", fix="end it by stop_server()"
        )
    _Running.server = _profiling.server(port)
    return _Running.server


@border
def stop_server() -> None:
    """End the server that `start_server` started."""
    if _Running.server is None:
        raise PlaitError("stop_server: no server runs", fix="start one: start_server(port)")
    _Running.server = None


def __getattr__(name: str) -> Any:
    if name in ("ProfileOptions", "ProfileData", "ProfileEvent", "ProfilePlane"):
        return _profiling.profiler_class(name)
    raise AttributeError(f"module 'plait.profiler' has no attribute {name!r}")


_advise("plait.profiler", globals())
