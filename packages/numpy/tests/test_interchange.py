"""Arrays among other things: numpy, DLPack, buffers, pickles, Python's numbers, printing.

Invariant: what is shared has one address, what is converted has numpy's value.
"""

import copy
import operator
import pickle
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import CopyError, TypeRule


def aligned(n, dtype=np.float32):
    """A vector of numpy's whose memory begins at a multiple of 64 bytes."""
    size = np.dtype(dtype).itemsize
    base = np.zeros(n + 64 // size, dtype)
    start = -base.ctypes.data % 64 // size
    out = base[start : start + n]
    out[:] = np.arange(n)
    return out


# ---- memory --------------------------------------------------------------------------------


def test_numpy_reads_our_memory():
    x = pnp.arange(100.0)
    for view in (np.asarray(x), np.from_dlpack(x), x.numpy()):
        assert view.ctypes.data == x.unsafe_buffer_pointer() and not view.flags.writeable
    assert np.array(x).ctypes.data != x.unsafe_buffer_pointer()
    assert np.asarray(x, copy=True).flags.writeable
    view = np.from_dlpack(x)
    del x
    assert view[-1] == 99
    with pytest.raises(ValueError, match="copy"):  # numpy's own words
        np.asarray(pnp.ones(3), dtype=np.float64, copy=False)


def test_we_read_numpys_memory():
    host = aligned(4096)
    x = pnp.from_dlpack(host)
    assert x.unsafe_buffer_pointer() == host.ctypes.data
    assert pnp.from_dlpack(host, copy=True).unsafe_buffer_pointer() != host.ctypes.data
    assert pnp.from_dlpack(host, copy=False).shape == (4096,)
    del host
    assert float((x + 1).sum()) == 4096 * 4097 / 2
    assert pnp.from_dlpack(x) is x
    for refused in (aligned(4096)[1:], aligned(4096).reshape(64, 64).T):
        np.testing.assert_array_equal(np.asarray(pnp.from_dlpack(refused)), refused)
        with pytest.raises(CopyError, match="without a copy"):
            pnp.from_dlpack(refused, copy=False)
    read_only = aligned(64)
    read_only.flags.writeable = False
    assert pnp.from_dlpack(read_only).unsafe_buffer_pointer() == read_only.ctypes.data


def test_donation_leaves_shared_memory_alone():
    host = aligned(1024)
    x = pnp.from_dlpack(host)
    plait.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert host[0] == 0 and host[-1] == 1023


class Theirs:
    """An array of a library that speaks DLPack only."""

    def __init__(self, host):
        self.host = host

    def __dlpack__(self, **options):
        return self.host.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.host.__dlpack_device__()


def test_dlpack_of_others():
    host = aligned(128)
    assert pnp.from_dlpack(Theirs(host)).unsafe_buffer_pointer() == host.ctypes.data
    x = pnp.ones((2, 3), "complex64")
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x, device="cpu", copy=True).flags.writeable in (True, False)
    with pytest.raises(CopyError, match="asked for on"):
        x.__dlpack__(dl_device=(2, 0))
    for dtype in (bool, np.int8, np.uint16, np.int64, np.float16, np.float64, np.complex128):
        y = np.ones(3, dtype)
        assert np.from_dlpack(pnp.from_dlpack(y)).dtype == y.dtype


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers are Python's since 3.12")
def test_the_buffer_protocol():
    assert memoryview(pnp.arange(3)).tolist() == [0, 1, 2]  # type: ignore[arg-type]


def test_the_buffer_method():
    view = pnp.arange(3).__buffer__(0)
    assert view.tolist() == [0, 1, 2] and view.readonly


# ---- copies --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64, "bfloat16"])
def test_pickles_and_copies(dtype):
    x = pnp.asarray(np.arange(6).reshape(2, 3), dtype=dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype == x.dtype and y.shape == (2, 3) and bool((x == y).all())
    assert copy.deepcopy(x).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert bool((pickle.loads(pickle.dumps({"a": [x]}))["a"][0] == x).all())


# ---- numbers -------------------------------------------------------------------------------


def test_conversions():
    assert float(pnp.float32(2.5)) == 2.5 and int(pnp.float32(2.9)) == 2
    assert complex(pnp.complex64(1 + 2j)) == 1 + 2j and bool(pnp.zeros((1, 1))) is False
    assert operator.index(pnp.int8(3)) == 3 and [10, 20, 30][pnp.asarray(1)] == 20
    assert list(range(pnp.asarray(3))) == [0, 1, 2] and hex(pnp.asarray(255)) == "0xff"
    assert pnp.ones((1, 1)).item() == 1.0 and pnp.arange(3).item(2) == 2
    assert round(pnp.asarray(2.567), 1) == pytest.approx(2.6, rel=1e-6)
    for x in (2.5, -3.5, 7.0, 0.4):
        got = round(pnp.asarray(x))
        assert got.dtype == np.int32 and got.item() == round(np.float32(x)) == round(x)
    assert round(pnp.asarray(125), -1).item() == 120 and round(pnp.asarray(np.int8(3))) == 3
    assert plait.jit(round)(2.5).item() == 2 and plait.jit(lambda x: round(x, 1))(2.25) == 2.2
    assert f"{pnp.asarray(2.567):.2f}" == "2.57" and f"{pnp.arange(2)}" == "[0 1]"
    for f, x in (
        (float, pnp.ones(2)),
        (operator.index, pnp.asarray(1.0)),
        (hash, pnp.asarray(1)),
        (len, pnp.asarray(1)),
        (iter, pnp.asarray(1)),
        (int, pnp.ones((1,))),
    ):
        with pytest.raises(TypeError):
            f(x)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(pnp.ones(2))


def test_iteration():
    x = pnp.arange(6).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert all(isinstance(row, plait.Array) for row in x)
    a, b, c = x
    assert c.tolist() == [4, 5] and 3 in x and 9 not in x
    assert [v.tolist() for v in reversed(x)] == [[4, 5], [2, 3], [0, 1]]
    assert plait.jit(lambda v: sum(row for row in v))(x).tolist() == [6, 9]


BINARY = (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow, operator.lt, operator.eq)  # fmt: skip


def test_numpy_on_the_left_gives_ours():
    host, ours = np.array([[1, 2], [3, 4]], np.float32), pnp.asarray([2.0, 3.0])
    for f in BINARY:
        for left, right in ((host, ours), (ours, host), (host[0, 0], ours), (2.0, ours)):
            got = f(left, right)
            assert isinstance(got, plait.Array), f
            np.testing.assert_allclose(np.asarray(got), f(np.asarray(left), np.asarray(right)),
                                       rtol=1e-6)  # fmt: skip
    assert isinstance(host @ ours, plait.Array) and isinstance(ours @ host, plait.Array)
    held = host.copy()
    held += ours  # numpy's array cannot become ours in place: the name gets a new one
    assert isinstance(held, plait.Array) and np.array_equal(
        np.asarray(held), host + np.asarray(ours)
    )
    assert type(np.sin(ours)) is np.ndarray and type(np.add(host, ours)) is np.ndarray
    with pytest.raises(plait.errors.ConcretizationError, match="numpy.asarray"):
        plait.jit(np.sin)(ours)


METHODS = [
    ("std", ()), ("std", (0,)), ("var", (1,)), ("take", (np.array([1, 0]), 0)), ("repeat", (2, 1)),
    ("trace", ()), ("diagonal", (1,)), ("compress", (np.array([True, False, True]), 0)),
    ("nonzero", ()), ("sum", (0,)), ("mean", ()), ("cumsum", (1,)), ("ravel", ("F",)),
    ("flatten", ("F",)), ("reshape", (4, 3)), ("reshape", (-1, 2)), ("round", (1,)),
    ("clip", (1, 3)), ("argmax", (1,)), ("swapaxes", (0, 1)), ("squeeze", ()), ("prod", (1,)),
    ("view", (np.int32,)), ("view", (np.int8,)), ("view", (np.float64,)), ("conj", ()), ("all", ()),
    ("min", (0, None, True)), ("argsort", (0,)), ("transpose", (1, 0)), ("searchsorted", (3.0,)),
    ("choose", ([np.zeros((3, 4)), np.ones((3, 4))],)),
]  # fmt: skip


def test_methods_are_numpys():
    x = np.float32([[0.5, -1, 2, 0], [3, 1.25, 0, 7], [4, 4.5, -6, 1]])
    for name, args in METHODS:
        host = {"searchsorted": np.sort(x[0]), "choose": (x > 1).astype(int)}.get(name, x)
        want = getattr(host, name)(*args)
        got = getattr(pnp.asarray(host), name)(*args)
        for w, g in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6, err_msg=name)
    assert np.array_equal(pnp.asarray(x).reshape(2, 6, order="F"), x.reshape(2, 6, order="F"))
    with pytest.raises(plait.PlaitError, match="no whole number"):
        pnp.arange(3, dtype="int8").view(np.int16)
    np.testing.assert_allclose(plait.jit(lambda v: v.std())(x), x.std(), rtol=1e-6)
    ours = pnp.asarray(x)
    assert ours.tobytes() == x.tobytes() and ours.tobytes("F") == x.tobytes("F")
    assert ours.is_fully_addressable and ours.is_fully_replicated
    assert ours.addressable_data(0) is ours


def test_printing():
    x = np.array([[1, 2.5], [np.nan, -np.inf]], np.float32)
    assert str(pnp.asarray(x)) == str(x)
    assert repr(pnp.asarray(x)) == repr(x).replace("array(", "Array(").replace("\n  ", "\n  ")
    assert repr(pnp.int32(3)) == "Array(3, dtype=int32)"
    assert repr(pnp.zeros((0, 2))) == "Array([], shape=(0, 2), dtype=float32)"
    assert "..." in repr(pnp.zeros(2000))
    with pnp.printoptions(precision=2):
        assert str(pnp.asarray([1 / 3])) == "[0.33]"


def test_things_with_array_methods():
    class Wrapped:
        def __plait_array__(self):
            return pnp.arange(3.0)

    class Hosted:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0, dtype=dtype)

    for thing in (Wrapped(), Hosted()):
        assert pnp.sin(thing).shape == (3,) and pnp.asarray(thing).tolist() == [0, 1, 2]
        assert isinstance(pnp.add(pnp.ones(3), thing), plait.Array)
    assert isinstance(pnp.ones(3) + Wrapped(), plait.Array)
    with pytest.raises(TypeError, match="Hosted"):  # operators leave it to its class
        pnp.ones(3) + Hosted()
    with pytest.raises(TypeRule):
        pnp.sin("abc")
