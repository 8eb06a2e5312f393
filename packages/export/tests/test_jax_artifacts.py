"""Files of `jax.export`, read here.

`golden/jax_*.bin` were written by jax 0.10.2, of the functions that the tests name, and
`golden/jax_results.npz` holds what jax computed with them: the leaves of the results, by number.
"""

import re
import struct
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import plait
from plait.errors import PlaitError
from plait_export import (
    ArtifactError,
    deserialize,
    export,
    import_jax,
    register_namedtuple_serialization,
    register_pytree_serialization,
)
from plait_export.jax_artifacts import _number, _root

GOLDEN = Path(__file__).with_name("golden")
RESULTS = np.load(GOLDEN / "jax_results.npz")
F32 = np.float32
X = np.linspace(-1, 1, 6, dtype=F32).reshape(2, 3)
W = np.linspace(0, 1, 6, dtype=F32).reshape(3, 2)
NAMES = ("tree", "sizes", "linalg", "devices", "effects", "calls", "nodes")


def blob(name):
    return (GOLDEN / f"jax_{name}.bin").read_bytes()


def as_jax_has_it(name, values):
    """Every leaf is what jax computed, to rounding."""
    leaves = plait.tree.leaves(values)
    held = {k for k in RESULTS if k.rpartition("_")[0] == name}
    for i, leaf in enumerate(leaves):
        if leaf.dtype != plait.float0:
            want = RESULTS[f"{name}_{i}"]
            held.remove(f"{name}_{i}")
            got = np.asarray(leaf).astype(want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert not held


def none(*shape):
    return np.zeros(shape, plait.float0)


def both(name, order=0):
    """What was read, and the same saved and read as one of ours."""
    exported = import_jax(blob(name))
    return exported, deserialize(exported.serialize(vjp_order=order))


def test_trees_types_arguments_that_are_not_used_and_derivatives():
    cts = none(2, 2), plait.numpy.ones((2, 3), "bfloat16"), none(), np.ones((2, 2), F32)
    for e in both("tree", 2):
        assert repr(e) == (
            "<Exported tree(f32[3,2], f32[2,3], f32[], i32[]) -> "
            "(bool[2,2], bf16[2,3], i32[], f32[2,2]) for cpu>"
        )
        out = e.call({"w": W}, X, F32(0), n=3)
        assert out["l"][1][1] is None and out["l"][1][0].dtype.name == "bfloat16"
        as_jax_has_it("tree", out)
        flat = W, X, F32(0), np.int32(3), *cts
        as_jax_has_it("tree_vjp", e.vjp().call(*flat))
        as_jax_has_it("tree_vjp_vjp", e.vjp().vjp().call(*flat, W, X, F32(1), none()))
        assert not e.vjp().vjp().has_vjp() and e.vjp().linear_from == 4


@pytest.mark.parametrize("n", [1, 3])
def test_symbolic_sizes_on_several_platforms(n):
    x = np.cos(np.arange(6 * n, dtype=F32)).reshape(2 * n, 3)
    for e in (*both("sizes", 1), import_jax(blob("sizes")).specialize({"b": n, "c": 3}, "cpu")):
        as_jax_has_it(f"sizes{n}", e.call(x, x[0]))
        ct = np.arange(6 * n + 3, dtype=F32)
        back, last = e.vjp().call(x, x[0], ct, 0 * x)
        want = 2 * n * ct[:-3].reshape(x.shape) * np.cos(x)
        np.testing.assert_allclose(back, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(last, 2 * n * ct[-3:])


def test_constraints_are_those_that_the_module_checks():
    """jax writes none beside it: b was said to be at most 4."""
    exported = import_jax(blob("sizes"))
    assert exported.platforms == ("tpu", "cpu") and exported.constraints == ()
    x = np.ones((10, 3), F32)
    with pytest.raises(PlaitError, match="b <= 4"):
        exported.call(x, x[0])


def test_keys_and_linear_algebra():
    for e in both("linalg"):
        assert e.custom_calls == ("lapack_spotrf_ffi",) and not e.has_vjp()
        factor, noise = e.call(plait.random.key(7), X)
        as_jax_has_it("linalg", (factor, noise))
        np.testing.assert_allclose(factor, np.linalg.cholesky(X @ X.T), rtol=1e-4)


N = namedtuple("N", "a b")


class Q:
    def __init__(self, a, kind):
        self.a, self.kind = a, kind


def test_nodes_of_classes_that_are_registered_here():
    with pytest.raises(ArtifactError, match="'plait.tests.[NQ]'") as e:
        import_jax(blob("nodes"))
    assert "register_pytree_serialization" in e.value.fix
    register_namedtuple_serialization(N, serialized_name="plait.tests.N")
    plait.tree.register(Q, lambda q: ((q.a,), q.kind), lambda kind, c: Q(c[0], kind))
    register_pytree_serialization(
        Q, serialized_name="plait.tests.Q",
        serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode,
    )  # fmt: skip
    for e in both("nodes"):
        product, (b, q) = e.call(N(F32(5), F32(2)), Q(F32(3), "k"))
        assert (float(product), float(b), float(q.a), q.kind) == (15, 2, 3, "k")
        with pytest.raises(PlaitError, match="exported for other arguments"):
            e.call(N(F32(5), F32(2)), Q(F32(3), "other"))


def test_named_tuples_of_other_fields():
    register_namedtuple_serialization(namedtuple("M", "a b"), serialized_name="plait.tests.M")
    data = blob("nodes").replace(b"plait.tests.N", b"plait.tests.M")
    refused(data.replace(b'["a", "b"]', b'["a", "c"]'), "has the fields .*'c'.*, and here .*'b'")


# ---- what cannot be read ------------------------------------------------------------------


def refused(data, text, fix=""):
    with pytest.raises(ArtifactError, match=text) as e:
        import_jax(data)
    assert e.value.fix and fix in e.value.fix
    assert "test_jax_artifacts.py" in str(e.value)


def test_what_no_artifact_has_is_refused_by_name():
    refused(blob("devices"), "runs on 2 devices", "without shardings")
    refused(blob("effects"), "has effects: .*[Ee]ffect", "without it")
    refused(blob("calls"), "calls functions outside StableHLO: .*nobodys", "import_jax(blob, ")
    refused(export(lambda x: x)(X).serialize(), "is an artifact of Plait's", "deserialize")
    refused("path", "is bytes, not str", '"rb"')


def field_at(data: bytes, *numbers: int) -> int:
    """Where a field of the root is, or of a table in it."""
    t = _root(data)
    for n in numbers[:-1]:
        t = t.table(n)
    return t._field(numbers[-1])


@pytest.mark.parametrize(
    ("numbers", "value", "text"),
    [
        ((14,), 8, "version 8 of the calling convention"),
        ((14,), 99, "version 99 of the calling convention"),
        ((18,), 4, "runs on 4 devices"),
        ((2, 0), 7, "a node of kind 7"),
        ((2, 0), 3, "in a tree of|is not the tree|describes no tree|damaged"),
    ],
)
def test_numbers_that_are_not_known(numbers, value, text):
    data = bytearray(blob("tree"))
    data[field_at(data, *numbers)] = value
    try:
        exported = import_jax(bytes(data))
    except ArtifactError as e:
        assert re.search(text, e.what)
    else:  # a list of arguments instead of a tuple is another tree, and a whole one
        assert numbers == (2, 0) and exported.in_tree != import_jax(blob("tree")).in_tree


def test_types_as_older_releases_write_them():
    """Each beside the function, and none by number."""
    data = bytearray(blob("sizes"))
    root = _root(data)
    for number in (19, 22, 23):
        at = root._offsets + 4 + 2 * number
        data[at : at + 2] = b"\0\0"
    old, new = import_jax(bytes(data)), import_jax(blob("sizes"))
    assert repr(old) == repr(new)
    as_jax_has_it("sizes1", old.call(np.cos(np.arange(6, dtype=F32)).reshape(2, 3),
                                     np.cos(np.arange(3, dtype=F32))))  # fmt: skip


def test_parts_that_are_shared():
    """A short file of as many types as its length, which share as many sizes."""
    count = 3000
    vtable = struct.pack("<22H", 44, 8, *[0] * 19, 4)  # field 19, the types, at byte 4 of the root
    root = 4 + len(vtable)
    aval = struct.pack("<HHHH", 8, 8, 0, 4) + struct.pack("<iI", 8, 4)  # field 1, the sizes
    sizes = b"".join([struct.pack("<I", 4 * (count - i)) for i in range(count)])
    size = struct.pack("<I", 1) + b"b"
    data = struct.pack("<I", root) + vtable + struct.pack("<iI", len(vtable), 4)
    data += struct.pack("<I", count) + b"".join(
        [struct.pack("<I", 4 * (count - i) + 8) for i in range(count)]
    )
    data += aval + struct.pack("<I", count) + sizes + size
    (first, *_), file = _root(data).tables(19), _root(data).file
    assert first.texts(1) == ["b"] * count
    assert file.left > 0
    with pytest.raises(ArtifactError, match="its parts are shared too often"):
        [t.texts(1) for t in _root(data).tables(19)]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", NAMES)
def test_no_damage_ends_otherwise_than_in_our_words(name):
    """Outside of modules: there are no checksums, and what is not noticed is another function."""
    data = blob(name)
    rng = np.random.default_rng(0)
    modules = set()
    for found in re.finditer(rb"ML\xefR", data):
        start = found.start()
        modules |= {*range(start - 4, start + _number(data, start - 4, "<I"))}
    outside = [i for i in range(len(data)) if i not in modules]
    broken = [data[:n] for n in rng.integers(0, len(data), 40)]
    for _ in range(200):
        changed = bytearray(data)
        for i in rng.choice(outside, 3):
            changed[i] = rng.integers(0, 256)
        broken.append(bytes(changed))
    broken += [b"", b"\0" * 100, b"\xff" * 100, rng.bytes(2000)]
    for each in broken:
        try:
            import_jax(each)
        except PlaitError as e:
            assert e.fix, e
