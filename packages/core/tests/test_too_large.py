"""Arrays of more bytes than can be counted: refused in words, where the runtime ends the process.

numpy says which those are: it refuses to make them, and ignores axes of size 0 as well.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import ShapeError

LARGE = [(2**31, 2**31), (2**40, 2**40, 0), (0, 2**40, 2**40), (2**63,), (2**63, 0), (10**6,) * 4]
HERE = "test_too_large.py"


@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "bool", "int4"])
def test_values_of_such_types_are_refused(shape, dtype):
    with pytest.raises(ValueError):
        np.empty(shape, "float32")
    for make in (
        lambda: pnp.zeros(shape, dtype),
        lambda: pnp.full(shape, 1, dtype),
        lambda: plait.lax.broadcast(pnp.ones((), dtype), shape),
        lambda: plait.jit(lambda: pnp.ones(shape, dtype))(),
    ):
        with pytest.raises(ShapeError, match="larger than memory can be") as caught:
            make()
        assert HERE in str(caught.value)


KEY = plait.random.key(0)
OPERATIONS = {
    "eye": lambda: pnp.eye(2**32),
    "tile": lambda: pnp.tile(np.ones(2, np.float32), (2**31, 2**31)),
    "repeat": lambda: pnp.repeat(np.ones(2, np.float32), 2**62),
    "pad": lambda: pnp.pad(np.ones(2, np.float32), 2**62),
    "iota": lambda: plait.lax.broadcasted_iota("int32", (2**31, 2**31), 0),
    "uniform": lambda: plait.random.uniform(KEY, (2**31, 2**31)),
    "split": lambda: plait.random.split(KEY, (2**31, 2**31)),
    "reshape": lambda: pnp.zeros((0,)).reshape((2**40, 2**40, 0)),
    "concatenate": lambda: pnp.concatenate([pnp.zeros((2**59, 0))] * 2),
    "outer": lambda: plait.jit(lambda a, b: pnp.outer(a, b).sum()).lower(
        *[plait.ShapeDtypeStruct((2**31,), "float32")] * 2
    ).compile(),
    "lower": lambda: plait.jit(lambda a: a).lower(
        plait.ShapeDtypeStruct((2**62,), "float32")
    ).as_text(),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_would_make_one_are_refused(name):
    with pytest.raises(ShapeError, match="larger than memory can be") as caught:
        OPERATIONS[name]()
    assert HERE in str(caught.value)


def _large(x):
    y = x + 1
    return pnp.broadcast_to(y, (2**31, 2**31)).sum()


LINE = f"{HERE}:{_large.__code__.co_firstlineno + 2}"


@pytest.mark.parametrize(
    "use",
    [
        plait.jit(_large),
        plait.jit(lambda x: plait.jit(_large)(x)),
        lambda x: plait.lax.scan(lambda c, _: (_large(c), None), x, None, length=2),
        lambda x: plait.lax.cond(x > 0, _large, lambda x: x, x),
        lambda x: plait.lax.while_loop(lambda c: c < 3, _large, x),
        lambda x: plait.lax.map(_large, pnp.stack([x, x])),
    ],
    ids=["jit", "jit of jit", "scan", "cond", "while", "map"],
)
def test_inside_programs_the_line_that_asks_for_it_is_named(use):
    with pytest.raises(ShapeError, match="larger than memory can be") as caught:
        use(1.0)
    assert LINE in str(caught.value)


def test_types_may_be_asked_for_and_empty_arrays_may_be_long():
    assert plait.eval_shape(_large, 1.0).shape == ()
    shape = (2**31, 2**31)
    assert plait.eval_shape(lambda x: pnp.broadcast_to(x, shape), 1.0).shape == shape
    assert pnp.zeros((2**40, 0)).shape == np.zeros((2**40, 0)).shape
    assert pnp.zeros((2**40, 0)).sum() == 0
