"""A console at a line of a program that runs compiled: the user's frames, with their values.

Where `breakpoint` is traced, the variables of the user's functions are taken apart; their traced
values are operands of a callback, which puts them together again when the program arrives there.

Invariant: variables are read, and never written back: the program goes on as if it had not stopped.
"""

import bdb
import cmd
import linecache
import sys
import warnings
from pprint import pformat
from types import FrameType
from typing import Any, NamedTuple

from plait.debug import callback
from plait.ext.errors import PlaitError, border, hidden
from plait.ext.trace import Handle, Value, admitted
from plait.ext.tree import TreeDef, flatten

__all__ = ["breakpoint"]


class Variables(NamedTuple):
    """The variables of a frame, taken apart: operands are numbered among those of all frames."""

    names: tuple[str, ...]
    trees: tuple[TreeDef | None, ...]
    leaves: tuple[tuple[Any, ...], ...]


class Operand(NamedTuple):
    """The place of a leaf that the program computes."""

    number: int


class Stop(NamedTuple):
    """One frame of the user's code at a breakpoint."""

    file: str
    line: int
    function: str
    names: dict[str, Any]
    """The variables of its module."""
    variables: Variables

    def __str__(self) -> str:
        return f"{self.file}({self.line}){self.function}()"


@border
def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    stdin: object = None,
    stdout: object = None,
) -> None:
    """Stop here when the program runs, and open a console with the user's frames and values.

    It works in jitted functions, in loops (at each turn) and under `vmap` (for each element).
    Commands are those of pdb: `p expression`, `pp`, `args`, `where`, `up`, `down`, `list`,
    `continue`, `quit`.  Other text is an expression or a statement of Python.

    Args:
      backend, token: accepted for compatibility.
      filter_frames: whether frames of Plait and of Python's library are left out.
      num_frames: the most frames to show; None for all.
      ordered: whether stops happen in the order of the program.
      stdin, stdout: files to read commands from, and to write to; by default those of the process.

    >>> import io, plait
    >>> said = io.StringIO()
    >>> def f(x):
    ...     y = x * 2
    ...     plait.debug.breakpoint(stdin=io.StringIO("p y"), stdout=said)
    ...     return y
    >>> _ = plait.jit(f)(3.0)
    >>> "6.0" in said.getvalue()
    True
    """
    del backend, token
    values: list[Any] = []
    stops = [_stop(frame, values) for frame in _frames(filter_frames)[:num_frames]]

    def arrive(*computed: object) -> None:
        _Console(stops, computed, stdin or sys.stdin, stdout or sys.stdout).cmdloop()

    callback(arrive, *values, ordered=ordered)


def _frames(filtered: bool) -> list[FrameType]:
    """Return the frames around a breakpoint, innermost first."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        if not filtered or not hidden(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    while found and hidden(found[0].f_code.co_filename):
        del found[0]
    return found


def _stop(frame: FrameType, values: list[Any]) -> Stop:
    code = frame.f_code
    held = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    return Stop(
        code.co_filename, frame.f_lineno, code.co_qualname, frame.f_globals, _apart(held, values)
    )


def _apart(variables: dict[str, Any], values: list[Any]) -> Variables:
    """Take variables apart, and append the values that the program computes."""
    trees: list[TreeDef | None] = []
    leaves: list[tuple[Any, ...]] = []
    for x in variables.values():
        try:
            with warnings.catch_warnings():  # a generator among the variables is a leaf
                warnings.simplefilter("ignore")
                flat, tree = flatten(x)
        except (PlaitError, TypeError, ValueError):  # it is not a tree
            flat, tree = [x], None
        trees.append(tree)
        leaves.append(tuple([_leaf(v, values) for v in flat]))
    return Variables(tuple(variables), tuple(trees), tuple(leaves))


def _leaf(x: object, values: list[Any]) -> Any:
    if not isinstance(x, Value) or isinstance(x, Handle):
        return x
    try:
        values.append(admitted(x))
    except PlaitError:  # its transformation is over, or lies further inside
        return repr(x)
    return Operand(len(values) - 1)


def _together(v: Variables, computed: tuple[Any, ...]) -> dict[str, Any]:
    found = {}
    for name, tree, leaves in zip(v.names, v.trees, v.leaves, strict=True):
        flat = [computed[x.number] if x.__class__ is Operand else x for x in leaves]
        try:
            found[name] = flat[0] if tree is None else tree.unflatten(flat)
        except Exception:  # a class of the user refuses arrays of numpy
            found[name] = flat
    return found


class _Console(cmd.Cmd):
    """The console of one stop."""

    prompt = "(plait) "
    identchars = cmd.Cmd.identchars

    def __init__(self, stops: list[Stop], computed: tuple[Any, ...], stdin: Any, stdout: Any):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is sys.stdin and stdout is sys.stdout
        self.stops, self.at = stops, 0
        self.held = [_together(s.variables, computed) for s in stops]

    def preloop(self) -> None:
        self._show()

    def _show(self) -> None:
        self._write(f"> {self.stops[self.at]}" if self.stops else "> (no frame of yours)")

    def _write(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _evaluated(self, text: str) -> tuple[bool, Any]:
        stop, held = (self.stops[self.at], self.held[self.at]) if self.stops else (None, {})
        try:
            # One namespace, so that comprehensions see the variables too.
            names = {**(stop.names if stop else {}), **held}
            try:
                return True, eval(text, names)
            except SyntaxError:
                before = dict(names)
                exec(text, names)
                held.update({k: v for k, v in names.items() if before.get(k, self) is not v})
                return False, None
        except Exception as e:
            self._write(f"*** {type(e).__name__}: {e}")
            return False, None

    def do_EOF(self, text: str) -> bool:
        """End of the input: let the program go on."""
        del text
        return True

    def default(self, line: str) -> None:
        """Evaluate an expression, or run a statement, in the frame."""
        there, x = self._evaluated(line.removeprefix("!"))
        if there and x is not None:
            self._write(repr(x))

    def emptyline(self) -> bool:
        return False

    def do_p(self, text: str) -> None:
        """p expression: print its value."""
        there, x = self._evaluated(text)
        if there:
            self._write(str(x))

    def do_pp(self, text: str) -> None:
        """pp expression: print its value on several lines."""
        there, x = self._evaluated(text)
        if there:
            self._write(pformat(x))

    def do_args(self, text: str) -> None:
        """args: print the variables of the frame."""
        del text
        for name, x in (self.held[self.at] if self.stops else {}).items():
            self._write(f"{name} = {x!r}")

    do_a = do_args

    def do_where(self, text: str) -> None:
        """where: print the frames, the innermost last."""
        del text
        for i, s in reversed([*enumerate(self.stops)]):
            self._write(f"{'>' if i == self.at else ' '} {s}")
            self._write(f"-> {linecache.getline(s.file, s.line).strip()}")

    do_w = do_bt = do_where

    def do_up(self, text: str) -> None:
        """up: go to the function that called this one."""
        del text
        self.at = min(self.at + 1, max(len(self.stops) - 1, 0))
        self._show()

    def do_down(self, text: str) -> None:
        """down: go back towards the breakpoint."""
        del text
        self.at = max(self.at - 1, 0)
        self._show()

    do_u, do_d = do_up, do_down

    def do_list(self, text: str) -> None:
        """list: print the source around the line."""
        del text
        if self.stops:
            s = self.stops[self.at]
            for n in range(max(s.line - 5, 1), s.line + 6):
                source = linecache.getline(s.file, n).rstrip("\n")
                if source or n <= s.line:
                    self._write(f"{n:4} {'->' if n == s.line else '  '} {source}")

    do_l = do_list

    def do_continue(self, text: str) -> bool:
        """continue: let the program go on."""
        del text
        return True

    do_c = do_cont = do_continue

    def do_quit(self, text: str) -> None:
        """quit: end the program with bdb.BdbQuit."""
        del text
        raise bdb.BdbQuit

    do_q = do_exit = do_quit
