"""A compilation that takes long is logged once, with what it is.

Invariant: the tests wait for the line itself, never for a time.
"""

import logging
import queue

import pytest

import plait
from plait._xla.patience import waiting_for

ENOUGH = 60
"""Seconds after which a line that does not come counts as missing."""


@pytest.fixture
def lines():
    """The lines of the log `plait`, as they come."""
    found = queue.Queue()
    handler = logging.Handler()
    handler.emit = lambda record: found.put(record.getMessage())
    log = logging.getLogger("plait")
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)


def test_a_long_compilation_is_told_once(lines):
    with plait.config(compile_notice=0.01):
        with waiting_for("model", 1234):
            text = lines.get(timeout=ENOUGH)
            with waiting_for("other", 1):
                other = lines.get(timeout=ENOUGH)
        assert "model, of 1234 equations" in text
        assert f"called at {__file__}:" in text
        assert "other" in other
    assert lines.empty()


def test_short_ones_and_off(lines):
    plait.jit(lambda x: x + 3)(1.0)
    with plait.config(compile_notice=0), waiting_for("model", 1):
        plait.jit(lambda x: x + 4)(1.0)
    assert lines.empty()


def test_an_error_ends_it(lines):
    with pytest.raises(ZeroDivisionError), waiting_for("model", 1):
        raise ZeroDivisionError
    with plait.config(compile_notice=0.01), waiting_for("next", 1):
        assert "next" in lines.get(timeout=ENOUGH)
    assert lines.empty()
