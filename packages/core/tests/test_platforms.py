"""Which platform a process computes on: plugins of the runtime that are there, damaged or missing.

Invariant: each case is a process of its own; folders made here stand for what wheels install.
"""

import os

import pytest

SCRIPT = """
import sys, warnings
import plait
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    try:
        if len(sys.argv) > 1:
            plait.config.platform = sys.argv[1]
        print(plait.default_backend(), float(plait.numpy.sin(0.0)))
    except plait.errors.PlaitError as e:
        print(type(e).__name__, e)
print(*[w.message for w in said])
"""


@pytest.fixture
def said(tmp_path, process):
    """`said(*args, plugin=name, **environment)`: what a process says that has such a plugin."""

    def run(*args: str, plugin: str | None = None, **env: str) -> str:
        if plugin is not None:
            folder = tmp_path / "jax_plugins" / plugin
            folder.mkdir(parents=True)
            (folder / "plugin.so").write_bytes(b"no library")
            (folder / "__init__.py").write_text("raise ImportError('this is not to be run')")
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = process(script, *args, PYTHONPATH=paths, **env)
        return done.stdout

    return run


def test_without_plugins_the_cpu_computes(said):
    assert said() == "cpu 0.0\n\n"
    assert said("cpu") == "cpu 0.0\n\n"
    assert said(PLAIT_PLATFORM="cpu") == "cpu 0.0\n\n"


@pytest.mark.parametrize("plugin, platform", [("xla_cuda13", "cuda"), ("mine", "mine")])
def test_a_plugin_that_does_not_work_is_told_of(plugin, platform, said):
    """The CPU computes, unless the platform was asked for; the plugin's Python is not run."""
    text = said(plugin=plugin)
    assert text.startswith("cpu 0.0") and f"the plugin for '{platform}' cannot be used" in text


@pytest.mark.sampled(6)
@pytest.mark.parametrize("module", ["of_somebody", "of_somebody.runtime"])
def test_a_plugin_that_an_entry_point_names(module, said, tmp_path):
    """The package is elsewhere, and is not run either."""
    folder = tmp_path.joinpath(*module.split("."))
    folder.mkdir(parents=True)
    (folder / "pjrt_plugin.so").write_bytes(b"no library")
    for place in {folder, tmp_path / "of_somebody"}:
        (place / "__init__.py").write_text("raise ImportError('this is not to be run')")
    about = tmp_path / "of_somebody-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: of-somebody\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[jax_plugins]\ntheirs = {module}:initialize\n")
    text = said("theirs")
    assert text.startswith("MissingPlatform the plugin for 'theirs' cannot be used")
    assert said() == "cpu 0.0\n\n"  # it is not looked for


def test_a_plugin_is_let_be_where_the_cpu_is_asked_for(said):
    assert said("cpu", plugin="xla_cuda13") == "cpu 0.0\n\n"


@pytest.mark.parametrize("asked", ["cuda", "gpu"])
def test_a_platform_that_was_asked_for_is_not_replaced(asked, said):
    text = said(asked, plugin="xla_cuda12")
    assert text.startswith("MissingPlatform the plugin for 'cuda' cannot be used")
    assert "plait.config.platform = None" in text and "script.py:" in text


@pytest.mark.parametrize("asked, fix", [("tpu", "libtpu"), ("gpu", "cuda"), ("vax", "= None")])
def test_a_platform_without_a_plugin_says_what_to_install(asked, fix, said):
    text = said(PLAIT_PLATFORM=asked)
    assert text.startswith(f"MissingPlatform the platform '{asked}' is set") and fix in text


def test_the_platform_is_one_and_stays(said, process):
    assert "cannot be 'cuda,cpu'" in said("cuda,cpu")
    script = SCRIPT.replace("import plait\n", "import plait\nplait.devices()\n")
    assert "cannot change any more" in process(script, "tpu").stdout
