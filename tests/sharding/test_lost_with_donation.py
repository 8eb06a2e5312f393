"""The failure of a program whose arguments were donated, when another process has ended.

Invariant: the cause is named, where the runtime's text has one, before the memory that is gone.
"""

import pytest

from plait._core import array, processes
from plait.errors import DeletedArrayError
from plait_sharding.distributed import PeerLost


class Gone:
    """A buffer that was donated."""

    def is_deleted(self):
        return True


class Peers:
    """A membership that finds the cause of failures of Gloo."""

    def explain(self, failure):
        return PeerLost("process 1 is gone", fix="start again") if "Gloo" in str(failure) else None


@pytest.mark.parametrize("text, kind", [("Gloo failed", PeerLost), ("x", DeletedArrayError)])
def test_the_cause_comes_first(text, kind, monkeypatch):
    monkeypatch.setattr(processes, "_member", [Peers()])
    assert type(array.failure(RuntimeError(text), [Gone()])) is kind
