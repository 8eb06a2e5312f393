"""JAX's record of connected processes, as libraries read it.

Invariant: failures of the runtime's client arrive as the class that libraries catch.
"""

from types import SimpleNamespace

import pytest

from plait.errors import JaxRuntimeError
from plait.ext.processes import RuntimeFailure
from plait_jax import connections

STATE = connections.global_state


def test_a_process_that_is_alone():
    assert STATE.client is None and STATE.process_id == 0 and STATE.num_processes == 1


class Client:
    """The calls of the runtime's client for one key."""

    def key_value_try_get(self, key):
        if key != "known":
            raise RuntimeFailure(f"NOT_FOUND: {key}")
        return "value"


def test_a_process_among_others(monkeypatch):
    member = SimpleNamespace(client=Client(), index=2, count=3)
    monkeypatch.setattr(connections, "member", lambda: member)
    assert (STATE.process_id, STATE.num_processes) == (2, 3)
    assert STATE.client.key_value_try_get("known") == "value"
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND: other"):
        STATE.client.key_value_try_get("other")
    member.client = None
    assert STATE.client is None
