"""Commands that install a missing distribution fit the way in which the core was installed.

Invariant: origins are written as installers write `direct_url.json`; the paths in commands exist.
"""

import json
import re
import shlex
from importlib import metadata as importlib_metadata
from pathlib import Path

import pytest

import plait
from plait._plugins.installing import install_command, install_command_from
from plait.errors import MissingPlugin

PREFIX = "python -m pip install "


@pytest.fixture
def checkout(tmp_path):
    """A folder like `packages` of the repository."""
    folder = tmp_path / "a checkout" / "packages"
    for name in ("core", "batching"):
        (folder / name).mkdir(parents=True)
        (folder / name / "pyproject.toml").write_text("")
    return folder


def words(command: str) -> list[str]:
    """The arguments of pip, as a shell splits them."""
    assert command.startswith(PREFIX)
    return shlex.split(command.removeprefix(PREFIX).partition("   (")[0])


def test_from_an_index():
    assert install_command_from(None, "plait-export") == f"{PREFIX}plait-export"
    assert words(install_command_from(None, "plait-batching", extra="piles")) == [
        "plait-batching[piles]"
    ]


@pytest.mark.parametrize("editable", [True, False])
def test_from_a_checkout(checkout, editable):
    origin = {
        "url": (checkout / "core").as_uri(),
        "dir_info": {"editable": True} if editable else {},
    }
    command = install_command_from(origin, "plait-batching", extra="piles")
    option = ["-e"] if editable else []
    assert words(command) == [*option, f"{checkout / 'batching'}[piles]"]
    # Another distribution is not in this checkout: the command says where the core came from.
    command = install_command_from(origin, "plait-export")
    assert words(command) == ["plait-export"]
    assert command.endswith(f"(from the source of plait-core: {origin['url']})")


def test_from_wheels(tmp_path):
    core, export = (tmp_path / f"plait_{n}-0.3.0-py3-none-any.whl" for n in ("core", "export"))
    core.touch(), export.touch()
    origin = {"url": core.as_uri(), "archive_info": {}}
    assert words(install_command_from(origin, "plait-export")) == [str(export)]
    assert words(install_command_from(origin, "plait-state")) == ["plait-state"]


def test_from_a_repository():
    origin = {
        "url": "https://plait.example/source",
        "vcs_info": {"vcs": "git", "commit_id": "abc123"},
        "subdirectory": "packages/core",
    }
    assert words(install_command_from(origin, "plait-state")) == [
        "plait-state @ git+https://plait.example/source@abc123#subdirectory=packages/state"
    ]


def test_the_command_for_this_installation():
    """The record of this environment is read, and its paths exist."""
    text = importlib_metadata.distribution("plait-core").read_text("direct_url.json")
    command = install_command("plait-export")
    if text and "dir_info" in json.loads(text):
        assert Path(words(command)[-1]).samefile(Path(__file__).parents[1] / "packages" / "export")
    else:
        assert "plait-export" in command or "plait_export-" in command


@pytest.mark.parametrize("broken", ["{", "[]", '{"url": 3}'])
def test_a_broken_record_counts_as_none(monkeypatch, broken):
    class Record:
        read_text = staticmethod(lambda name: broken)

    monkeypatch.setattr(importlib_metadata, "distribution", lambda name: Record)
    assert install_command("plait-export") == f"{PREFIX}plait-export"


def test_errors_have_the_command(monkeypatch):
    monkeypatch.setitem(plait._plugins.metadata.HINTS, "hinted", "plait-export")
    with plait.config(plugins="all"), pytest.raises(MissingPlugin) as caught:
        plait._plugins.metadata.resolve("hinted")
    assert caught.value.fix == install_command("plait-export")


MESSAGES = re.compile(r"pip install (?:-\w+ )?[\"']*plait[\w-]*")
"""A command that takes a distribution of the project from an index, whatever this one came from."""


def test_no_message_takes_a_package_of_ours_from_an_index():
    """`--upgrade` is left: it speaks of what is installed, from wherever that came."""
    root = Path(__file__).parents[1]
    sources = [*root.glob("packages/*/src/**/*.py"), *root.glob("packages/*/README.md")]
    pages = [p for p in root.glob("docs/**/*.md") if "internals" not in p.parts]
    for path in [*sources, *pages]:
        found = MESSAGES.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found and found[0]}"
