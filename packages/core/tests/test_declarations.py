"""The reading of installed distributions, compared with `importlib.metadata`.

Invariant: the distributions are files written here; what is read of the broken ones is written down
with each.
"""

import importlib.metadata
import re
import subprocess
import sys
import zipfile
from typing import Any

import pytest

from plait._base import entry_points as reading
from plait._plugins.metadata import core_version

ABOUT = "Metadata-Version: 2.1\nName: Some.Plugin_one\nVersion: 1.2+local.3\n\nName: not this one\n"
POINTS = """
# a comment
[console_scripts]
tool = some:main
[plait.api]
one = some.plugin:one.two
 two=some:two [extra]
[other.plait.api]
three = some:three
[plait.rules.jvp]
core = some.rules
"""


def written(folder, about: Any = ABOUT, points: Any = POINTS, metadata="METADATA"):
    """Write the metadata of a distribution; parts that are None are left out."""
    folder.mkdir(parents=True)
    for name, text in ((metadata, about), ("entry_points.txt", points)):
        if text is not None:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def found(monkeypatch, *places):
    """The distributions that are read of these places."""
    monkeypatch.setattr(sys, "path", [str(p) for p in places])
    return reading.distributions("plait.")[0]


def by_python(places):
    """Yield the distributions that `importlib.metadata` finds there, in the form of `reading`."""
    for dist in importlib.metadata.distributions(path=[str(p) for p in places]):
        points = tuple(
            reading.EntryPoint(p.group, p.name, p.value)
            for p in dist.entry_points
            if p.group.startswith("plait.")
        )
        if points:
            name = re.sub(r"[-_.]+", "-", dist.metadata["Name"]).lower()
            yield reading.Distribution(name, dist.version, points)


FOLDERS = {
    "wheel": ("some_plugin-1.2.dist-info", "METADATA"),
    "development": ("some.egg-info", "PKG-INFO"),
    "upper case": ("Some-1.2.DIST-INFO", "METADATA"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_is_read_as_python_reads_it(kind, tmp_path, monkeypatch):
    name, metadata = FOLDERS[kind]
    written(tmp_path / name, metadata=metadata)
    written(tmp_path / "unrelated-1.dist-info", points="[console_scripts]\nx = y:z\n")
    written(tmp_path / "bare-1.dist-info", points=None)
    expected = list(by_python([tmp_path]))
    assert len(expected) == 1 and len(expected[0].points) == 3
    assert found(monkeypatch, tmp_path) == expected


def test_an_egg_is_read_as_python_reads_it(tmp_path, monkeypatch):
    egg = tmp_path / "some-1.2.egg"
    written(egg / "EGG-INFO", metadata="PKG-INFO")
    expected = list(by_python([egg]))
    assert len(expected) == 1 and found(monkeypatch, egg) == expected


def test_a_zip_file_is_read_as_python_reads_it(tmp_path, monkeypatch):
    file = tmp_path / "some.zip"
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("some-1.2.dist-info/METADATA", ABOUT)
        z.writestr("some-1.2.dist-info/entry_points.txt", POINTS)
    expected = list(by_python([file]))
    assert len(expected) == 1 and found(monkeypatch, file) == expected


def test_the_first_of_two_with_one_name_counts(tmp_path, monkeypatch):
    for folder, version in (("a", "1"), ("b", "2")):
        written(tmp_path / folder / "x-0.dist-info", about=f"Name: X_y\nVersion: {version}\n")
    assert [(d.name, d.version) for d in found(monkeypatch, tmp_path / "b", tmp_path / "a")] == [
        ("x-y", "2")
    ]


def test_finders_of_other_packages_are_asked(tmp_path, monkeypatch):
    written(tmp_path / "some-1.2.dist-info")

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None

        @staticmethod
        def find_distributions(context):
            return importlib.metadata.MetadataPathFinder.find_distributions(
                importlib.metadata.DistributionFinder.Context(path=[str(tmp_path)])
            )

    class Broken(Finder):
        @staticmethod
        def find_distributions(context):
            raise ValueError("no distributions")

    expected = list(by_python([tmp_path]))
    monkeypatch.setattr(sys, "meta_path", [Broken, *sys.meta_path, Finder])
    assert len(expected) == 1 and found(monkeypatch) == expected


@pytest.mark.parametrize(
    "about, points, why",
    [
        (None, POINTS, "METADATA is missing"),
        ("", POINTS, "METADATA is missing"),
        (b"Name: b\xffd\nVersion: 1\n", POINTS, "UnicodeDecodeError"),
        (ABOUT, b"[plait.api]\nh\xff = b:f\n", "UnicodeDecodeError"),
        (ABOUT, "[plait.api]\nf\ng = some:g\n", "'f' of [plait.api]"),
        (ABOUT, "[plait.api]\ng = some:g\nf = !!! ::\n", "'f = !!! ::' of [plait.api]"),
    ],
    ids=["no METADATA", "empty", "bytes", "bytes in declarations", "no value", "no module"],
)
def test_what_is_broken_is_reported(about, points, why, tmp_path, monkeypatch):
    written(tmp_path / "bad-0.5.dist-info", about, points)
    written(tmp_path / "good-1.dist-info", "Name: good\nVersion: 1\n")
    dists = {d.name: d for d in found(monkeypatch, tmp_path)}
    ((place, reason),) = reading.distributions("plait.")[1]
    assert why in reason and ("bad-0.5.dist-info" in place or place == "some-plugin-one")
    by_line = place == "some-plugin-one"
    assert {*dists} == ({"some-plugin-one", "good"} if by_line else {"good"})
    if by_line:
        assert [p.value for p in dists[place].points] == ["some:g"]


def test_places_that_hold_nothing(tmp_path, monkeypatch):
    written(tmp_path / "one" / "some-1.dist-info")
    (tmp_path / "garbage.dist-info").write_text("garbage")
    (tmp_path / "two-1.dist-info" / "entry_points.txt").mkdir(parents=True)
    (tmp_path / "gone-1.dist-info").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file.txt").write_text("no zip file")
    places = (tmp_path, tmp_path / "none", tmp_path / "file.txt", "with\0null", tmp_path / "one")
    assert [d.name for d in found(monkeypatch, *places)] == ["some-plugin-one"]


@pytest.mark.parametrize("value", ["math:tau", "math : tau", "math:tau [extra]", "os:path.sep"])
def test_an_entry_point_is_loaded_as_python_loads_it(value):
    theirs = importlib.metadata.EntryPoint("f", value, "plait.api")
    ours = reading.EntryPoint("plait.api", "f", value)
    assert (ours.module, ours.attr) == (theirs.module, theirs.attr)
    assert ours.load() is theirs.load()


@pytest.mark.parametrize("value", ["", "!!! not a module ::", "math:", "math:tau:e"])
def test_a_value_that_names_nothing_fails_when_it_is_loaded(value):
    point = reading.EntryPoint("plait.api", "f", value)
    assert (point.module, point.attr) == ("", "")
    with pytest.raises(ValueError, match="expected module:object, got"):
        point.load()


def test_the_version_of_core():
    assert core_version() == importlib.metadata.version("plait-core")


def test_a_first_operation_does_without_the_machinery():
    """The parsers that take longer than the operation stay out, if only folders are on the path."""
    code = """if True:
        import sys
        import plait
        plait.lax.sin(1.0) + 1
        names = "importlib.metadata", "email", "csv", "zipfile"
        print(*[n for n in names if n in sys.modules], plait.__version__)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [importlib.metadata.version("plait-core")]
