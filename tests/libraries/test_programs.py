"""Programs of JAX's libraries on Plait, compared with what jax computed.

Invariant: a library is used as it was installed; where numbers may differ by more than rounding,
the row in TOLERANCE says why.
"""

import importlib.util
import json
import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import plait
from plait._base.config import _SETTINGS

HERE = Path(__file__).parent

spec = importlib.util.spec_from_file_location("battery", HERE / "battery.py")
battery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(battery)

EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
FAILING: dict[tuple[str, str], str] = {}
"""Programs that fail, with the reason."""

TOLERANCE: dict[tuple[str, str], float] = {
    # Solvers stop at a gradient of a thousandth: rounding decides how far below it they get.
    ("jaxopt", "bfgs"): 1e-3,
    # A chain of 25 steps, whose lengths follow from the earlier ones, amplifies rounding.
    ("blackjax", "adaptation"): 1e-3,
}
"""Programs whose results may differ by more than this file allows in general."""


def cases():
    """Every program, as (library, name); the README's has `first` in its id."""
    for library in battery.LIBRARIES:
        for i, name in enumerate(battery.names(library)):
            marks = []
            if (library, name) in FAILING:
                marks = [pytest.mark.xfail(reason=FAILING[library, name], strict=True)]
            label = f"{library}-{'first-' if i == 0 else ''}{name}"
            yield pytest.param(library, name, marks=marks, id=label)


_imported: dict = {}
"""Library -> (its programs, the settings that importing it changes)."""


def settings():
    return {name: getattr(plait.config, name) for name in _SETTINGS}


def imported(library):
    """Import a library; its settings hold for its own programs, as in a process of their own."""
    if library not in _imported:
        import_module("jax")  # which has settings of its own
        before = settings()
        programs = battery.programs(library)
        own = {k: v for k, v in settings().items() if before[k] != v}
        for name in own:
            setattr(plait.config, name, before[name])
        _imported[library] = programs, own
    return _imported[library]


@pytest.mark.filterwarnings("default")  # libraries warn of what is theirs
@pytest.mark.parametrize("library, name", [*cases()])
def test_program(library, name):
    programs, own = imported(library)
    with warnings.catch_warnings(), plait.config(**own):
        warnings.simplefilter("ignore")
        got = battery.numbers(programs[name]())
    want = EXPECTED[library][name]
    tol = TOLERANCE.get((library, name), 2e-5)
    compare(got, want, tol)


def compare(got, want, tol):
    """Lists of numbers agree, one by one; a list's scale is that of its largest number."""
    assert type(got) is type(want)
    if isinstance(want, list) and want and not isinstance(want[0], list | str):
        scale = max((abs(v) for v in want if np.isfinite(v)), default=0)
        np.testing.assert_allclose(got, want, rtol=tol, atol=tol * min(scale, 1) + 1e-7)
    elif isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            compare(g, w, tol)
    else:
        assert got == want


def test_first_of_all_no_jax_is_there():
    import jax

    assert type(jax).__module__ == "plait_jax.finder"
    assert not [n for n, m in sys.modules.items() if n.startswith("jaxlib.xla_bridge")]


def test_first_that_every_program_has_its_numbers():
    for library in battery.LIBRARIES:
        assert [*EXPECTED[library]] == battery.names(library)
