"""Interpreters that observe operations, and the table by which they go through those with programs.

Invariant: nothing is defined here.
"""

from .._ops.observer import Observer, Run
from .._ops.passage import Loop, Passage, Watched, pass_through, runs_rules

__all__ = ["Loop", "Observer", "Passage", "Run", "Watched", "pass_through", "runs_rules"]
