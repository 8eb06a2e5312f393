"""Artifacts written by earlier releases: each is read, verified and called for as long as this
package reads its format.

`golden/format1_*.plait` were written by releases 0.1.0 and 0.2.1 of the functions below, and are
never written again: what they hold is what there is in the world.  `derivatives.plait` is of the
first release that saves derivatives.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.ext.ops import elementwise as el
from plait_export import container, deserialize, export, symbolic_args_specs

GOLDEN = Path(__file__).with_name("golden")
F32 = np.float32


def static(params, x, *, flip=None):
    """Trees, several dtypes, a constant, an inner function."""
    y = el.tanh(x @ params["w"] + params["b"][0])
    return {"y": y, "top": lax.top_k(y, 2), "n": (x.astype("bfloat16"), None, y > 0)}


def symbolic(x, y):
    """Sizes, constraints, a loop, sorting, and sizes as numbers."""
    total, steps = lax.scan(lambda c, r: (c + r, c * x.shape[0]), y, x)
    return [total, steps, pnp.sort(x, 0), x.reshape(-1), x.mean(0)]


def by_platform(x):
    """Questions about the platform: in a loop, in an inner function, at the outside."""
    inner = plait.jit(
        lambda v: lax.platform_dependent(
            v, cpu=lambda a: a * a, tpu=lambda a: a - 7.0, default=lambda a: a + 3.0
        )
    )
    total, _ = lax.scan(lambda c, r: (c + inner(r), None), x[0] * 0.0, x)
    y = lax.platform_dependent(x, tpu=lambda v: v * 0.0, cpu=pnp.sin, cuda=pnp.cos)
    return inner(x), total, y


PARAMS = {"w": np.ones((3, 4), F32), "b": [np.zeros(4, F32)]}
X = np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3)
MADE = {
    "static": lambda: export(static, platforms=["cpu", "cuda"])(PARAMS, X, flip=None),
    "symbolic": lambda: export(symbolic)(
        *symbolic_args_specs((X, X[0]), ("2*b, c + 1", "c + 1"), ["b <= 64", "c >= 2"])
    ),
    "platforms": lambda: export(by_platform, platforms=["cuda", "cpu", "tpu"])(
        *symbolic_args_specs((X,), "b, 3")
    ),
}


def read(name: str):
    return deserialize((GOLDEN / f"format1_{name}.plait").read_bytes())


def test_a_static_function():
    exported = read("static")
    assert repr(exported) == (
        "<Exported static(f32[4], f32[3,4], f32[2,3]) -> "
        "(bf16[2,3], bool[2,4], f32[2,2], i32[2,2], f32[2,4]) for cpu, cuda>"
    )
    rng = np.random.default_rng(0)
    w, b, x = (rng.normal(size=s).astype(F32) for s in ((3, 4), 4, (2, 3)))
    out = exported.call({"w": w, "b": [b]}, x, flip=None)
    y = np.tanh(x @ w + b)
    np.testing.assert_allclose(out["y"], y, rtol=1e-5)
    np.testing.assert_array_equal(out["top"][1], np.argsort(-y, 1)[:, :2])
    assert out["n"][0].dtype.name == "bfloat16" and out["n"][1] is None
    np.testing.assert_array_equal(out["n"][2], y > 0)


@pytest.mark.parametrize("sizes", [(2, 3), (6, 5)])
def test_a_symbolic_function(sizes):
    exported = read("symbolic")
    assert exported.constraints == ("b <= 64", "c >= 2")
    x = np.random.default_rng(0).normal(size=sizes).astype(F32)
    total, steps, ordered, flat, mean = exported.call(x, x[0])
    np.testing.assert_allclose(total, x[0] + x.sum(0), rtol=1e-5, atol=1e-5)
    before = x[0] + np.cumsum(x, 0) - x
    np.testing.assert_allclose(steps, before * sizes[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ordered, np.sort(x, 0))
    np.testing.assert_array_equal(flat, x.reshape(-1))
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5, atol=1e-5)


@pytest.mark.feature("E12")
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("made", ["then", "now"])
def test_a_function_for_several_platforms(made, size):
    """In format 1 its module calls a function of ours to learn where it is; now it is told."""
    exported = read("platforms") if made == "then" else MADE["platforms"]()
    assert ("plait.platform_index" in exported.mlir_module()) == (made == "then")
    x = np.random.default_rng(0).normal(size=(size, 3)).astype(F32)
    inside = export(lambda x: exported.call(x), platforms=["tpu", "cpu"])
    several = inside(*symbolic_args_specs((X,), "b, 3"))
    sized = inside(x)
    for call in (exported.call, plait.jit(exported.call), several.call, sized.call):
        squares, total, sines = call(x)
        np.testing.assert_allclose(squares, x * x, rtol=1e-6)
        np.testing.assert_allclose(total, (x * x).sum(0), rtol=1e-5)
        np.testing.assert_allclose(sines, np.sin(x), rtol=1e-6)
    assert several.by_argument and "plait.platform_index" not in several.mlir_module()
    text = plait.jit(exported.call).lower(x, lowering_platforms=["tpu"]).as_text()
    chosen = re.findall(r'"stablehlo.case"\((%[a-z]+)', text)
    assert {*chosen} <= {"%c"}, "where it runs is known, so every choice is a constant"


@pytest.mark.parametrize("name", MADE)
def test_they_are_written_again_bit_for_bit(name):
    """What was read is kept whole, but for the name of who wrote it."""
    saved = (GOLDEN / f"format1_{name}.plait").read_bytes()
    manifests = []
    for data in (saved, read(name).serialize()):
        manifest, members = container.unpack(data, (99,))
        manifests.append({k: v for k, v in manifest.items() if k != "producer"} | members)
    assert manifests[0] == manifests[1]


@pytest.mark.parametrize("name", MADE)
def test_the_functions_are_still_exported_alike(name):
    """The same signature, constraints and trees; the operations may change."""
    old, new = read(name), MADE[name]()
    assert repr(old) == repr(new)
    assert (old.in_tree, old.out_tree) == (new.in_tree, new.out_tree)


def weighted(n, x):
    """A large constant, an argument without a derivative, a size."""
    w = pnp.asarray(np.linspace(-1, 1, 900, dtype=F32).reshape(3, 300) ** 3)
    return pnp.tanh(x @ w) * n


def jaxlib_of(manifest):
    return manifest["producer"].rpartition("jaxlib ")[2]


@pytest.mark.feature("E14")
@pytest.mark.parametrize("size", [1, 4])
def test_a_function_with_two_derivatives(size):
    """Read and called without the plugin that made them."""
    saved = (GOLDEN / "derivatives.plait").read_bytes()
    assert len(saved) < 16_000, "three modules, and 3,600 bytes of one constant"
    written = deserialize(saved).serialize(vjp_order=2)
    old, new = (container.unpack(d, (99,)) for d in (saved, written))
    assert old[0]["vjp"] == new[0]["vjp"]
    if jaxlib_of(old[0]) == jaxlib_of(new[0]):  # another one writes the same in other bytes
        assert old[1] == new[1]
    exported = deserialize(saved if size == 1 else written)
    w = np.linspace(-1, 1, 900, dtype=F32).reshape(3, 300) ** 3
    x = np.random.default_rng(0).normal(size=(size, 3)).astype(F32)
    ct, moved = np.cos(np.arange(size * 300, dtype=F32)).reshape(size, 300), x[::-1]
    y, none = np.tanh(x @ w), np.zeros((), plait.float0)
    np.testing.assert_allclose(exported.call(2, x), 2 * y, rtol=1e-4, atol=1e-4)
    first = exported.vjp()
    assert repr(first) == (
        "<Exported vjp_of_weighted(i32[], f32[b,3], f32[b,300]) -> (float0[], f32[b,3]) for cpu>"
    )
    zero, back = first.call(2, x, ct)
    assert zero.dtype == plait.float0
    np.testing.assert_allclose(back, 2 * (ct * (1 - y * y)) @ w.T, rtol=1e-3, atol=1e-3)
    second = first.vjp()
    assert first.has_vjp() and not second.has_vjp()
    _, over_x, over_ct = second.call(2, x, ct, none, moved)
    along = moved @ w
    want = (-4 * ct * y * (1 - y * y) * along) @ w.T
    np.testing.assert_allclose(over_x, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(over_ct, 2 * (1 - y * y) * along, rtol=1e-3, atol=1e-3)
