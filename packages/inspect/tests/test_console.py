"""Breakpoints and progress bars in compiled code, with input and bars that a test provides."""

import bdb
import functools
import io
import sys
import threading
import types

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, MissingPlugin

X = np.float32([1, 2])


class Talk:
    """The input of a console, and its output."""

    def __init__(self, text):
        self.text, self.out = text, io.StringIO()

    @property
    def files(self):
        return {"stdin": io.StringIO(self.text), "stdout": self.out}

    @property
    def said(self):
        return [line.strip() for line in self.out.getvalue().replace("(plait) ", "\n").split("\n")]


def inner(x, params, talk):
    y = x * 2
    plait.debug.breakpoint(**talk.files)
    return y + params["w"]


def outer(x, talk):
    label = "outside"
    return inner(x, {"w": x + 1}, talk), label


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
def test_values_of_the_users_frames(run):
    talk = Talk("p y\np params['w'] * 10\nup\np label\nc\n")
    run(lambda x: outer(x, talk)[0])(X)
    assert "[2. 4.]" in talk.said
    assert "[20. 30.]" in talk.said
    assert "outside" in talk.said
    assert f"> {__file__}({inner.__code__.co_firstlineno + 2})inner()" in talk.said
    assert f"> {__file__}({outer.__code__.co_firstlineno + 2})outer()" in talk.said


def test_commands():
    asked = ["args", "where", "list", "z = y + 1", "z.sum()", "[y[0] for _ in (1, 2)]", "nothing"]
    talk = Talk("\n".join([*asked, "pp y", "", "help", "down", "EOF"]))
    plait.jit(lambda x: outer(x, talk)[0])(X)
    text = "\n".join(talk.said)
    assert "y = array([2., 4.], dtype=float32)" in text
    assert '-> return inner(x, {"w": x + 1}, talk), label' in text
    assert "plait.debug.breakpoint(**talk.files)" in text
    assert "8.0" in text
    assert "NameError: name 'nothing' is not defined" in text


def test_results_do_not_change_and_variables_are_not_written():
    talk = Talk("y = 100\nc\n")
    got = plait.jit(lambda x: outer(x, talk)[0])(X)
    np.testing.assert_array_equal(got, X * 2 + X + 1)


def test_in_loops():
    talk = Talk("p c\nc\n" * 2)

    def turn(c, a):
        plait.debug.breakpoint(**talk.files, ordered=True)
        return c + a, None

    plait.jit(lambda x: lax.scan(turn, 0.0, x)[0])(X)
    assert [s for s in talk.said if s in ("0.0", "1.0")] == ["0.0", "1.0"]


def test_frames_can_be_fewer():
    talk = Talk("where\nc\n")

    def f(x):
        plait.debug.breakpoint(**talk.files, num_frames=2)
        return x

    plait.jit(f)(X)
    assert len([s for s in talk.said if s.startswith("->")]) == 2


def test_quit():
    talk = Talk("q\n")
    with pytest.raises(bdb.BdbQuit):
        inner(pnp.asarray(X), {"w": 1.0}, talk)


# ---- progress ----------------------------------------------------------------------------------


class Bar:
    """Stands for tqdm's class."""

    made: list = []

    def __init__(self, total=None, desc="", **options):
        self.total, self.desc, self.options, self.n, self.closed = total, desc, options, 0, False
        Bar.made.append(self)

    def update(self, n):
        assert not self.closed
        self.n += n

    def refresh(self):
        self.seen = self.n

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


def add(c, a):
    return c + a, None


def test_bars_count_turns(bars):
    f = plait.jit(lambda x: lax.scan(plait.debug.progress(add, 5, leave=False), 0.0, x)[0])
    assert f(np.arange(5.0, dtype="float32")) == 10
    plait.effects_barrier()
    (bar,) = bars
    assert (bar.n, bar.total, bar.desc, bar.closed) == (5, 5, "add", True)
    assert bar.options == {"leave": False}
    f(np.arange(5.0, dtype="float32"))
    plait.effects_barrier()
    assert [b.n for b in bars] == [5, 5]


def test_other_loops(bars):
    progress = plait.debug.progress
    n = plait.jit(lambda x: lax.while_loop(lambda c: c < 4, progress(lambda c: c + 1), x))(0)
    x = plait.jit(lambda x: lax.fori_loop(0, 3, progress(lambda i, c: c * 2, 3, desc="d"), x))(1)
    plait.effects_barrier()
    assert (n, x) == (4, 8)
    assert [(b.n, b.closed, b.desc) for b in bars] == [(4, False, "<lambda>"), (3, True, "d")]


def test_a_loop_of_unknown_length_shows_its_last_turn(bars):
    f = plait.jit(
        lambda x: lax.while_loop(lambda c: c < 4, plait.debug.progress(lambda c: c + 1), x)
    )
    for turns in (4, 8):
        f(0)
        plait.effects_barrier()
        (bar,) = bars
        assert shown_in_the_end(bar, turns)


def shown_in_the_end(bar, turns):
    """Return whether a bar shows so many turns, however long the machine takes."""
    while getattr(bar, "seen", None) != turns:
        threading.Event().wait(0.01)
    return True


def test_tqdm_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingPlugin, match=r"pip install .*inspect\[progress\]"):
        plait.debug.progress(add)
    with pytest.raises(ArgumentError, match="not a function"):
        plait.debug.progress(3)


def test_rich_is_needed_if_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingPlugin, match=r"pip install .*inspect\[rich\]"):
        plait.debug.progress(add, bars="rich")


def test_wrong_options_of_bars(bars):
    for options, words in (
        ({"total": -1}, "total must be a number of turns"),
        ({"total": 2.5}, "got 2.5"),
        ({"total": True}, "got True"),
        ({"bars": "curses"}, "neither 'tqdm' nor 'rich'"),
    ):
        with pytest.raises(ArgumentError, match=words):
            plait.debug.progress(add, **options)


def loops(**options):
    """Run a loop of each kind, each with a bar; return the results."""
    progress = functools.partial(plait.debug.progress, **options)
    sums = plait.jit(lambda x: lax.scan(progress(add, 5, desc="scan"), 0.0, x)[0])
    power = plait.jit(
        lambda x: lax.fori_loop(0, 3, progress(lambda i, c: c * 2, 3, desc="fori"), x)
    )
    count = plait.jit(
        lambda x: lax.while_loop(lambda c: c < 4, progress(lambda c: c + 1, desc="while"), x)
    )
    out = sums(np.arange(5.0, dtype="float32")), power(1), count(0)
    plait.effects_barrier()
    return [int(x) for x in out]


def test_bars_of_tqdm_itself():
    pytest.importorskip("tqdm")
    written = io.StringIO()
    assert loops(file=written, mininterval=0, miniters=1) == [10, 8, 4]
    lines = written.getvalue().replace("\r", "\n").splitlines()
    for last in ("scan: 100%", "fori: 100%", "while: 4it"):
        assert any(line.startswith(last) for line in lines), lines
    assert any("5/5" in line for line in lines)


def test_bars_of_rich_itself():
    console = pytest.importorskip("rich.console")
    written = console.Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    assert loops(bars="rich", console=written, auto_refresh=False) == [10, 8, 4]
    said = written.file.getvalue()
    assert said.count("100%") >= 2
    assert "scan" in said and "fori" in said
