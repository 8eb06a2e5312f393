"""Names that no module of `plait` has: the error names the module as users import it.

Invariant: the modules are those that Python finds as attributes of `plait`, and those below them
whose functions are tested.
"""

import traceback
from importlib import import_module
from types import ModuleType

import pytest
from tests.typing import public_functions

import plait

PACKAGES = {"plait", *(f"plait_{p}" for p in ("checks", "export", "inspect", "numpy", "sharding"))}
"""Third parties' modules may be found on `plait`, too."""
APART = {"plait.ext"}
"""The module for authors, whose families of names have errors of their own."""


def found():
    """Return the public modules by their paths."""
    paths = {f"plait.{n}" for n in dir(plait) if isinstance(getattr(plait, n), ModuleType)}
    paths |= {*public_functions.SURFACES, *public_functions.OTHERS, "plait"}
    ours = [p for p in sorted(paths - APART) if p.partition(".")[0] == "plait"]
    return {p: m for p in ours if (m := import_module(p)).__name__.partition(".")[0] in PACKAGES}


MODULES = found()


def test_the_modules_are_found():
    """So the cases below are not a few."""
    assert {"plait.numpy", "plait.scipy.special", "plait.numpy.linalg", "plait.events"} <= {
        *MODULES
    }
    assert len(MODULES) > 30


@pytest.mark.parametrize("path", MODULES)
def test_an_unknown_name(path):
    with pytest.raises(AttributeError) as e:
        _ = MODULES[path].no_such_name_at_all
    text = traceback.format_exception_only(e.value)
    assert f"{path} has no 'no_such_name_at_all'" in text[0], text
    assert f"dir({path}) lists what there is" in "".join(text)


@pytest.mark.parametrize("path", MODULES)
def test_a_name_that_is_misspelt(path):
    """The closest name is one that the module has."""
    names = [n for n in getattr(MODULES[path], "__all__", ()) if len(n) > 6]
    if names:
        name = max(names, key=lambda n: (len(n), n))
        with pytest.raises(AttributeError, match="did you mean") as e:
            getattr(MODULES[path], name[:3] + name[4:])
        assert f"{path}.{name}" in str(e.value)


@pytest.mark.parametrize("asked", ["plait", "plait.numpy", "plait.lax", "plait.nn"])
@pytest.mark.parametrize("home", ["plait", "plait.numpy", "plait.nn", "plait.lax", "plait.random"])
def test_a_name_that_another_module_has(asked, home):
    """The fix is an expression that has the object, whatever module of ours holds it."""
    here, there = import_module(asked), import_module(home)
    names = [n for n in getattr(there, "__all__", dir(there)) if not hasattr(here, n)]
    assert names or asked == home
    for name in names:
        with pytest.raises(AttributeError) as e:
            getattr(here, name)
        fix = str(e.value).splitlines()[-1].strip()
        assert fix.startswith("write "), fix
        written = fix.removeprefix("write ")
        if written.endswith(f".{name}"):  # another says how it is called, or what is written here
            eval(written)
