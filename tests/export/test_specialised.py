"""Artifacts for sizes that are numbers, and for one platform, made of those for more.

Invariant: results are compared with numpy, and modules are looked into for what must be gone.
"""

from pathlib import Path

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.errors import PlaitError
from plait.ext.errors import ArgumentError, DimMismatch
from plait_export import NotExportable, deserialize, export, symbolic_args_specs

F32 = np.float32
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
TYPES = symbolic_args_specs((X, X[0]), ("2*b, c", "c"), ["b <= 8", "c >= 2"])


def function(x, y):
    """Sizes in types, as numbers, in loops, and in what is asked of other platforms."""
    z = lax.platform_dependent(x, tpu=lambda v: v * 0 - 5, cpu=pnp.sin, cuda=pnp.cos)
    total, _ = lax.scan(lambda c, r: (c + r, None), y, z)
    return {"t": total * x.shape[0], "z": pnp.sort(z.reshape(-1)), "n": pnp.arange(x.shape[0])}


def reference(x, y):
    z = np.sin(x)
    return {"t": (y + z.sum(0)) * len(x), "z": np.sort(z.reshape(-1)), "n": np.arange(len(x))}


def made(platforms=("cpu",), order=1):
    exported = export(function, platforms=platforms)(*TYPES)
    return exported, deserialize(exported.serialize(vjp_order=order))


def steep(p, x, *, scale):
    return {"y": steeper(x * scale) @ p["w"]}


@plait.custom_jvp
def steeper(x):
    return 2 * x


steeper.defjvp(lambda xs, ts: (steeper(xs[0]), 5 * ts[0]))


@pytest.mark.parametrize("again", [False, True])
def test_all_that_does_not_depend_on_sizes_is_as_it_was(again):
    w = np.ones((3, 2), F32)
    types = symbolic_args_specs(({"w": w}, X), (None, "b, 3"), ["b <= 8"])
    e = export(steep, platforms=("cpu", "cuda"), weights=1)(*types, scale=F32(1))
    if again:
        e = deserialize(e.serialize(vjp_order=1), lose_custom_rules=True)
    s = e.specialize({"b": 4})
    depending = {"in_avals", "out_avals", "scope", "symbolic", "custom_calls",
                 "mlir_module_serialized"}  # fmt: skip
    fields = [n for cls in type(e).__mro__ for n in getattr(cls, "__slots__", ())
              if not n.startswith("_") and n not in depending]  # fmt: skip
    assert {"in_tree", "paths", "platforms", "custom_rules", "rules_may_go", "held"} <= {*fields}
    for name in fields:
        assert getattr(s, name) == getattr(e, name), name
    assert s.paths == ["args[0]['w']", "args[1]", "['scale']"]
    assert s.vjp().linear_from == e.vjp().linear_from == 3
    with pytest.raises(PlaitError, match="scale.* of steep was exported as f32.. and is f32.1."):
        s.call({"w": w}, X, scale=np.ones(1, F32))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("platforms", [("cpu",), ("tpu", "cpu", "cuda")])
@pytest.mark.parametrize("platform", [None, "cpu"])
@pytest.mark.parametrize("b", [1, 2])
def test_equal_results_without_a_symbol(platforms, platform, b):
    for e in made(platforms):
        s = e.specialize({"b": b, "c": 3}, platform)
        assert s.platforms == ((platform,) if platform else platforms)
        assert not s.symbolic and s.scope is None and s.constraints == ()
        assert [a.shape for a in s.in_avals] == [(2 * b, 3), (3,)]
        assert [a.shape for a in s.out_avals] == [(2 * b,), (3,), (6 * b,)]
        text = s.mlir_module()
        assert not [w for w in ("?", "shape_assertion", "polymorphism") if w in text]
        assert s.by_argument == (len(s.platforms) > 1) == ("_platform_index" in text)
        if not s.by_argument:
            assert "stablehlo.cosine" not in text and s.custom_calls == ()
        x, want = X[: 2 * b], reference(X[: 2 * b], X[0])
        for f in (s, deserialize(s.serialize(vjp_order=1))):
            for call in (f.call, plait.jit(f.call)):
                got = call(x, X[0])
                for k in want:
                    np.testing.assert_allclose(got[k], want[k], rtol=1e-5, atol=1e-5)
            gradient = plait.grad(lambda x, f=f: f.call(x, X[0])["t"].sum())(x)
            np.testing.assert_allclose(gradient, 2 * b * np.cos(x), rtol=1e-5)
            assert "?" not in f.vjp().mlir_module()
            with pytest.raises(PlaitError, match="was exported as"):
                f.call(X[:3], X[0])


def test_one_platform_of_several_and_no_sizes():
    f = lambda x: lax.platform_dependent(x, tpu=lambda v: v - 7, default=lambda v: v * 3)  # noqa: E731
    several = export(f, platforms=["tpu", "cpu", "cuda"])(X)
    for name, operation in (("cpu", "multiply"), ("tpu", "subtract"), ("cuda", "multiply")):
        one = deserialize(several.specialize(platform=name).serialize())
        assert one.platforms == (name,) and not one.by_argument
        body = one.mlir_module()
        assert f"stablehlo.{operation}" in body and "stablehlo.case" not in body
        assert ("multiply" in body) != ("subtract" in body)
    np.testing.assert_allclose(several.specialize({}, "cpu").call(X), 3 * X)
    np.testing.assert_allclose(several.specialize().call(X), 3 * X)


def test_files_of_format_1_too():
    """Their modules ask a function of ours where they run; one platform leaves no question."""
    folder = Path(__file__).parents[2] / "packages" / "export" / "tests" / "golden"
    old = deserialize((folder / "format1_platforms.plait").read_bytes())
    for platform in ("cpu", None):
        one = deserialize(old.specialize({"b": 4}, platform).serialize())
        assert ("plait.platform_index" in one.custom_calls) == (platform is None)
        squares, total, sines = one.call(X)
        np.testing.assert_allclose(squares, X * X, rtol=1e-6)
        np.testing.assert_allclose(total, (X * X).sum(0), rtol=1e-5)
        np.testing.assert_allclose(sines, np.sin(X), rtol=1e-6)


def test_sizes_that_may_be_0_and_keys_and_trees():
    key = plait.random.key(0)
    types = symbolic_args_specs(X, "b, 3", scope=plait.export.SymbolicScope([], lower=0))

    def f(key, d):
        return {"s": d["x"].sum(0) + plait.random.uniform(key, (3,))}

    exported = export(f)(key, {"x": types})
    noise = np.asarray(plait.random.uniform(key, (3,)))
    for b in (0, 4):
        got = exported.specialize({"b": b}).call(key, {"x": X[:b]})["s"]
        np.testing.assert_allclose(got, X[:b].sum(0) + noise, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ({"b": 9, "c": 3}, DimMismatch, "b <= 8"),
        ({"b": 1, "c": 1}, DimMismatch, "c >= 2"),
        ({"b": 0, "c": 3}, DimMismatch, "cannot be specialised to"),
        ({"b": -1, "c": 3}, DimMismatch, "cannot be specialised to"),
        ({"b": 1}, ArgumentError, "has the symbolic sizes b, c, and numbers are given for b\n"),
        ({"b": 1, "c": 3, "d": 1}, ArgumentError, "given for b, c, d"),
        ({}, ArgumentError, "given for none"),
        (None, ArgumentError, "given for none"),
        ({"b": 1.5, "c": 3}, ArgumentError, "the size b of function is 1.5"),
        ({"b": "1", "c": 3}, ArgumentError, "the size b of function is '1'"),
        ({1: 1, "c": 3}, ArgumentError, "given for 1, c"),
        (4, ArgumentError, "sizes is 4"),
    ],
)
def test_sizes_that_do_not_fit(sizes, error, text):
    with pytest.raises(error, match=text) as e:
        export(function)(*TYPES).specialize(sizes)
    assert e.value.fix and "test_specialised.py" in str(e.value)


@pytest.mark.parametrize("platform", ["tpu", "gpu", 3])
def test_platforms_that_it_was_not_exported_for(platform):
    with pytest.raises(NotExportable, match=f"for cpu, and not for {platform!r}") as e:
        export(function)(*TYPES).specialize({"b": 1, "c": 3}, platform)
    assert e.value.fix


def test_equations_among_sizes_are_checked():
    types = symbolic_args_specs((X, X[0]), ("b, c", "d"), ["b + c == d"])
    exported = export(lambda x, y: pnp.concatenate([x[:, 0], x[0], y]))(*types)
    s = exported.specialize({"b": 4, "c": 3, "d": 7})
    np.testing.assert_allclose(s.call(X, np.zeros(7, F32))[:4], X[:, 0])
    with pytest.raises(DimMismatch, match="b \\+ c|d"):
        exported.specialize({"b": 4, "c": 3, "d": 8})


def test_equal_specialisations_are_equal_bytes():
    exported, again = made(("tpu", "cpu"))
    one = exported.specialize({"b": 1, "c": 3}, "cpu").serialize(vjp_order=1)
    assert one == again.specialize({"b": 1, "c": 3}, "cpu").serialize(vjp_order=1)
    assert one == deserialize(one).specialize().serialize(vjp_order=1)
    assert not deserialize(exported.serialize()).specialize({"b": 1, "c": 3}).has_vjp()
