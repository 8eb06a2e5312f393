"""Pictures of shardings and meshes: text, SVG, and what notebooks are given.

Invariant: small pictures are written out; in larger ones which slice each device has is read off
the picture and compared with the pieces of an array.
"""

import re
import subprocess
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import plait
from plait.debug import visualize_array_sharding, visualize_sharding
from plait.errors import ArgumentError, AxisError, OperandTypeError
from plait.sharding import picture
from plait_sharding import GSPMDSharding, Mesh, NamedSharding, P, device_put, make_mesh

SVG = "{http://www.w3.org/2000/svg}"


class Node:
    """One of many devices, eight for each process."""

    platform = "tpu"

    def __init__(self, number):
        self.id, self.process_index = number, number // 8


def cells(svg):
    """(lines of text) of each rectangle of a picture, by where they are."""
    root = ElementTree.fromstring(svg)
    texts = [(float(t.get("x")), float(t.get("y")), t.text) for t in root.iter(SVG + "text")]
    found = []
    for box in list(root.iter(SVG + "rect"))[1:]:  # after the background
        x, y, w, h = (float(box.get(k)) for k in ("x", "y", "width", "height"))
        found.append([t for tx, ty, t in texts if x < tx < x + w and y < ty < y + h])
    return found


def test_rows_and_columns(lies, capsys):
    visualize_array_sharding(device_put(np.ones((4, 8)), lies("x", "y")))
    visualize_sharding((8,), lies("y"))
    visualize_sharding((), lies())
    assert (
        capsys.readouterr().out
        == """\
shape (4, 8): PartitionSpec('x', 'y') of Mesh('x': 2, 'y': 4)
down: axis 0 of 4, over 'x'; across: axis 1 of 8, over 'y'
┌────────────┬────────────┬────────────┬────────────┐
│   cpu 0    │   cpu 1    │   cpu 2    │   cpu 3    │
│ [0:2, 0:2] │ [0:2, 2:4] │ [0:2, 4:6] │ [0:2, 6:8] │
├────────────┼────────────┼────────────┼────────────┤
│   cpu 4    │   cpu 5    │   cpu 6    │   cpu 7    │
│ [2:4, 0:2] │ [2:4, 2:4] │ [2:4, 4:6] │ [2:4, 6:8] │
└────────────┴────────────┴────────────┴────────────┘
shape (8,): PartitionSpec('y') of Mesh('x': 2, 'y': 4)
across: axis 0 of 8, over 'y'
┌──────────┬──────────┬──────────┬──────────┐
│ cpu 0,4  │ cpu 1,5  │ cpu 2,6  │ cpu 3,7  │
│  [0:2]   │  [2:4]   │  [4:6]   │  [6:8]   │
│ 2 copies │ 2 copies │ 2 copies │ 2 copies │
└──────────┴──────────┴──────────┴──────────┘
shape (): PartitionSpec() of Mesh('x': 2, 'y': 4)
┌──────────┐
│ cpu 0-7  │
│ 8 copies │
└──────────┘
"""
    )


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_every_device_has_its_slice(ndim):
    mesh = make_mesh((2, 2, 2), ("a", "b", "c"))
    turned = GSPMDSharding(plait.devices(), "{devices=[2,4]<=[4,2]T(1,0)}")
    A = np.arange(4 * 4 * 4)[: 4**ndim].reshape((4,) * ndim)
    for s in (
        NamedSharding(mesh, P(*"abc"[:ndim])),
        NamedSharding(mesh, P(*"cab"[:ndim])),
        NamedSharding(mesh, P(("a", "c"))),
        *([turned] if ndim == 2 else []),
    ):
        x = device_put(A, s)
        for lines in (cells(picture(x).svg()), list(boxes(str(picture(x))))):
            drawn = {}
            for devices, index, *_ in lines:
                at = eval(f"np.s_{index}")
                drawn |= dict.fromkeys(each(devices), A[at])
            assert set(drawn) == set(range(8))
            for shard in x.addressable_shards:
                np.testing.assert_array_equal(drawn[shard.device.id], shard.data)


def each(devices):
    """The numbers in `cpu 0,1,4-7`."""
    for part in devices.removeprefix("cpu ").split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def boxes(text):
    """(lines of text) of each cell."""
    rows = []
    for line in text.splitlines():
        if line[0] in "┌├":
            rows.append([])
        if line[0] == "│":
            rows[-1].append([part.strip() for part in line[1:-1].split("│")])
    for row in rows:
        yield from (list(filter(None, lines)) for lines in zip(*row, strict=True))


def test_layers():
    s = NamedSharding(make_mesh((2, 2, 2), ("a", "b", "c")), P("a", "b", "c"))
    text = str(picture(s, (8, 4, 6)))
    assert [line for line in text.splitlines() if line.startswith("axis 0:")] == [
        "axis 0: 0:4", "axis 0: 4:8",
    ]  # fmt: skip
    assert len(list(boxes(text))) == len(cells(picture(s, (8, 4, 6)).svg())) == 8
    assert "[4:8, 2:4, 3:6]" in text


def test_many_devices_are_folded():
    mesh = Mesh(np.array([Node(i) for i in range(256)]).reshape(16, 16), ("x", "y"))
    drawn = picture(mesh)
    svg = cells(drawn.svg())
    assert 20 < len(svg) <= 64 and "…" in drawn.svg()
    assert [svg[0], svg[-1]] == [["tpu 0", "process 0"], ["tpu 255", "process 31"]]
    for line in str(drawn).splitlines():
        assert len(line) <= 80
    assert "…" in str(drawn) and "tpu 255" in str(drawn)
    row = picture(Mesh([Node(i) for i in range(100)], ("x",)))
    assert len(cells(row.svg())) == 63
    deep = picture(
        Mesh(np.array([Node(i) for i in range(8 * 9 * 7)]).reshape(8, 9, 7), tuple("abc"))
    )
    assert len(cells(deep.svg())) <= 64 and "\n…\n" in str(deep)


def test_copies_and_processes_in_few_words():
    from plait_sharding.drawing import numbers

    assert numbers([3, 1, 2, 0]) == "0-3" and numbers([5]) == "5" and numbers([4, 0]) == "0,4"
    assert numbers([0, 1, 4, 5, 6]) == "0,1,4-6"
    assert numbers(range(0, 64, 2)) == "0,2,…,62"


def test_meshes_draw_their_grid(mesh):
    assert (
        str(picture(mesh))
        == """\
Mesh('x': 2, 'y': 4)
down: 'x' of 2; across: 'y' of 4
┌─────────┬─────────┬─────────┬─────────┐
│  cpu 0  │  cpu 1  │  cpu 2  │  cpu 3  │
├─────────┼─────────┼─────────┼─────────┤
│  cpu 4  │  cpu 5  │  cpu 6  │  cpu 7  │
└─────────┴─────────┴─────────┴─────────┘"""
    )
    assert cells(mesh._repr_html_()) == [[f"cpu {i}"] for i in range(8)]
    assert cells(make_mesh((2, 1, 2), tuple("abc"))._repr_html_()) == [
        [f"cpu {i}"] for i in range(4)
    ]
    assert cells(Mesh([[3, 5]], ("a", "b"))._repr_html_()) == [["device 3"], ["device 5"]]


def test_what_notebooks_are_given(lies, monkeypatch, capsys):
    assert cells(lies("x")._repr_html_()) == [["cpu 0-3", "4 copies"], ["cpu 4-7", "4 copies"]]
    one = plait.SingleDeviceSharding(3)
    assert cells(one._repr_html_()) == [["cpu 3"]]
    four = NamedSharding(make_mesh((2, 2, 2, 1), tuple("abcd")), P("a", "b", "c", "d"))
    assert len(cells(four._repr_html_())) == 8  # the fourth axis is not divided
    shown = []
    fake = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=None),
        display=SimpleNamespace(display=shown.append),
    )
    monkeypatch.setitem(sys.modules, "IPython", fake)
    visualize_sharding((8,), lies("x"), color_map=lambda t: (1, 0, t))
    (drawn,) = shown
    assert capsys.readouterr().out == "" and len(cells(drawn._repr_html_())) == 2
    assert re.findall('fill="(#[0-9a-f]{6})"', drawn._repr_html_()) == ["#ff0000", "#ff0080"]
    assert "[0:4]" in repr(drawn)


def test_colours_and_sizes(lies, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show = lambda **how: (visualize_sharding((8,), lies("x"), **how), capsys.readouterr().out)[1]  # noqa: E731
    plain = show(use_color=False)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", show()) == plain
    assert "48;2;0;255;0m\x1b[30m" in show(color_map=lambda t: (t, 1 - t, 0.0, 1.0))
    widths = [len(show(use_color=False, **how).splitlines()[2]) for how in (
        {}, {"min_width": 20}, {"scale": 2.0}, {"max_width": 10},
    )]  # fmt: skip
    assert widths == [23, 43, 43, 23]
    assert show(use_color=False, scale=2.0).count("\n") == 2 + 8


def test_mistakes(lies, told):
    told(lambda: visualize_sharding((3,), lies("x")), "2 equal pieces", kind=AxisError)
    told(lambda: picture(3), "no picture of 3", kind=ArgumentError)
    told(lambda: visualize_array_sharding(3), "not an array", kind=OperandTypeError)
    nowhere = Mesh(np.arange(8, 16), ("x",))
    assert NamedSharding(nowhere, P("x"))._repr_html_() is None


def test_four_axes_are_too_many():
    code = """
import plait
plait.config.cpu_devices = 16
s = plait.NamedSharding(plait.make_mesh((2,) * 4, tuple("abcd")), plait.P(*"abcd"))
assert s._repr_html_() is None
try:
    plait.debug.visualize_sharding((2,) * 4, s)
except plait.errors.ArgumentError as e:
    print(e.what)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "divides 4 axes" in done.stdout
