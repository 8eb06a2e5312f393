"""The reference describes each function's parameters, result and errors, and its links lead on.

Invariant: signatures are those of the functions themselves, and the errors named for what is not
an array are raised when the function is called with one.
"""

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait

pytest.importorskip("scipy")

DOCS = Path(__file__).parents[1] / "docs"
MODULES = (
    "plait.numpy", "plait.numpy.linalg", "plait.numpy.fft", "plait.lax", "plait.lax.linalg",
    "plait.nn", "plait.random", "plait.scipy.special", "plait.scipy.linalg",
)  # fmt: skip
SILENT = {
    "plait.numpy": {"array_repr", "array_str", "frompyfunc", "get_printoptions", "isscalar",
                    "iterable", "printoptions", "save", "savez", "set_printoptions"},
    "plait": {"check_tracer_leaks", "clear_caches", "copy_to_host_async", "debug_infs",
              "debug_nans", "default_backend", "default_prng_impl", "device_get", "disable_jit",
              "effects_barrier", "ensure_compile_time_eval", "is_jittable", "log_compiles",
              "map_axes", "print_environment_info", "unregister_jittable"},
}  # fmt: skip
"""Functions that refuse nothing of their own."""


@pytest.fixture(scope="module")
def names():
    """docs/names.py, as a module."""
    spec = importlib.util.spec_from_file_location("names_of_docs", DOCS / "names.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def functions(names, module):
    """Yield the functions of a module, with their names."""
    owner = importlib.import_module(module)
    for name in names.public(owner):
        x = getattr(owner, name)
        if inspect.isfunction(x):
            yield name, x


@pytest.mark.parametrize("module", MODULES)
def test_each_parameter_has_a_line(names, module):
    missing = [
        f"{name}({parameter})"
        for name, x in functions(names, module)
        for parameter, text in names.docstrings.parameter_lines(module, x).items()
        if not text
    ]
    assert not missing, "describe it in the docstring, or in docs/parameters.toml"


@pytest.mark.parametrize("module", ["plait", *MODULES])
def test_results_and_errors_are_named(names, module):
    for name, x in functions(names, module):
        text = "\n".join(names.docstrings.described(module, name, x))
        returns = inspect.signature(x).return_annotation
        silent = returns in (None, Any) or x.__module__.startswith("numpy")
        assert "**Returns** " in text or silent, name
        assert ("**Raises**" in text) is (name not in SILENT.get(module, ())), name


def test_signatures_have_types_and_a_line_for_each_parameter(names):
    text = names.described("plait.numpy", "sum")
    code = text.split("```")[1]
    parameters = list(inspect.signature(plait.numpy.sum).parameters)
    lines = [line.strip() for line in code.splitlines() if line.startswith("    ")]
    assert [line.partition(":")[0] for line in lines] == parameters
    assert "    axis: Axis | None = None," in code and code.rstrip().endswith(") -> Array")
    listed = text.partition("**Parameters**")[2].partition("**Returns**")[0]
    assert re.findall(r"^\* `(\w+)`: ", listed, re.M) == parameters


def test_marks_between_parameters(names):
    def f(a, /, b: int, *, c: float = 1.0, **more):
        pass

    assert names.signature_text("f", f) == "f(a, /, b: int, *, c: float = 1.0, **more)"
    assert names.signature_text("g", lambda x, *xs, y: 0) == "g(x, *xs, y)"


def test_an_alias_is_described_once(names):
    text = names.described("plait.numpy", "abs absolute")
    assert text.count("**Parameters**") == 1
    assert "[`absolute`](#plait.numpy.absolute)" in text


def test_what_a_docstring_says_of_several_parameters(names):
    text = """Return it.

    a: half, m elements; n: the length
    (or none); axis, norm: as in `fft`.  As numpy.fft.irfft.  Raises TypeRule for others.

    Returns a pair.
    """
    parts = names.docstrings.parts_of(inspect.cleandoc(text), {"a", "n", "axis", "norm"})
    assert parts.parameters == {
        "a": "half, m elements", "n": "the length (or none)", "axis, norm": "as in `fft`.",
    }  # fmt: skip
    assert parts.raises == ["Raises TypeRule for others."]
    assert parts.returns == ["Returns a pair."]
    assert parts.paragraphs == ["Return it.", "As numpy.fft.irfft."]


def test_links_lead_to_headings(names):
    anchors, links = {}, set()
    for page in (DOCS / "reference").glob("*.md"):
        made = names.on_page_markdown(page.read_text(encoding="utf-8"))
        anchors[page.name] = re.findall(r"^### \S+ \{ #(\S+) \}$", made, re.M)
        found = re.findall(r"\]\(([\w.-]*)#(plait[\w.]*)\)", made)
        links |= {(target or page.name, anchor) for target, anchor in found}
        sources = re.findall(rf"\]\({re.escape(names.SOURCE)}(.*)#L\d+\)", made)
        assert all((DOCS.parent / source).is_file() for source in sources)
    assert len(links) > 200
    assert not [link for link in links if link[1] not in anchors[link[0]]]
    for page, given in anchors.items():
        assert len({*given}) == len(given), page


def test_links_to_numpy_name_functions_of_numpy(names):
    made = names.described("plait.numpy", "logical_not")
    assert "https://numpy.org/doc/stable/reference/generated/numpy.logical_not.html" in made
    for found in re.findall(r"generated/numpy\.([\w.]+)\.html", names.described("plait.numpy")):
        x = np
        for part in found.split("."):
            x = getattr(x, part)


def test_shared_texts_belong_to_parameters(names):
    """A text whose function or parameter no longer exists is an error."""
    for key, texts in names.docstrings.shared().items():
        if key in ("any", *MODULES):
            continue
        module, _, name = key.rpartition(".")
        x = getattr(importlib.import_module(module), name)
        assert {*texts} <= {*inspect.signature(x).parameters}, key
        assert not {*texts} & {*names.docstrings.own_parameters(x)}, f"{key}: it says so itself"
