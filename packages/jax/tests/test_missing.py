"""Names of JAX that Plait lacks: importing them is no error, using them is a precise one.

Invariant: what is reported is compared with the lines of a file that the test writes.
"""

import importlib
import inspect

import pytest

import plait_jax
from plait.errors import PlaitError

SPARSE = "jax.experimental.sparse"


@pytest.fixture
def sparse(jax):
    """A module of which Plait has nothing."""
    return importlib.import_module(SPARSE)


def test_a_missing_name_waits_until_it_is_used(sparse):
    kind = sparse.BCOO
    assert not isinstance(3, kind)
    assert kind | int and int | kind  # in annotations

    class Mine(kind):
        """A library's own class, which may need nothing of its base."""

        def doubled(self, x):
            return 2 * x

    assert Mine().doubled(3) == 6
    for use in (lambda: kind((1, 2)), lambda: kind.fromdense(3), lambda: Mine.fromdense(3)):
        with pytest.raises(plait_jax.MissingName, match=f"nothing for {SPARSE}.BCOO") as e:
            use()
        assert isinstance(e.value, AttributeError)
        assert "report()" in e.value.fix


def test_the_error_names_the_line_of_whoever_used_it(sparse):
    with pytest.raises(plait_jax.MissingName) as e:
        sparse.BCSR(3)
    line = inspect.currentframe().f_lineno - 1
    assert f"{__file__}:{line}" in str(e.value)


def test_dunders_are_absent(sparse):
    assert not hasattr(sparse.BCOO, "__array__")
    assert not hasattr(sparse, "__nothing__")


def test_the_report_of_this_process(sparse):
    count = len(plait_jax.report().requests)
    sparse.COO  # noqa: B018
    line = inspect.currentframe().f_lineno - 1
    mine = plait_jax.report().requests[count:]
    assert [(r.name, r.place, r.used) for r in mine] == [
        (f"{SPARSE}.COO", f"{__file__}:{line}", False)
    ]
    assert f"{SPARSE}.COO  asked for at {__file__}:{line}" in str(plait_jax.report())


def test_the_report_of_a_library(jax, tmp_path, monkeypatch):
    folder = tmp_path / "somelib"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import jax\n"
        "import jax.numpy as jnp\n"
        "from jax.experimental import sparse\n"
        "from jax.experimental.sparse import BCOO, no_such_thing\n"
        "def f(x):\n"
        "    return jnp.sin(x), jax.jit(x), sparse.CSR(x), jax.new_thing(x), jnp.sinn\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = plait_jax.report("somelib")
    assert found.names == [f"{SPARSE}.BCOO", f"{SPARSE}.CSR"]
    assert [r.place.rpartition(":")[2] for r in found.requests] == ["4", "6"]
    with pytest.raises(PlaitError, match="no library 'somelibs'"):
        plait_jax.report("somelibs")
    assert str(type(found)(())) == "no name of JAX was missing"
