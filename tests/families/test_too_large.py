"""Types of more bytes than can be counted come from every transformation: all are refused."""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import ShapeError
from plait.ext.lower import lock, mlir


def _large(x):
    return pnp.broadcast_to(pnp.sin(x), (2**31, 2**31)).sum()


@pytest.mark.parametrize(
    "use",
    [
        plait.grad(_large),
        plait.jit(plait.grad(_large)),
        lambda x: plait.vmap(_large)(pnp.stack([x, x])),
        lambda x: plait.vmap(lambda a: pnp.zeros((2**30, 2**27)) + a)(pnp.ones(2**6)),
        lambda x: plait.grad(plait.checkpoint(_large))(x),
        lambda x: plait.export.export(plait.jit(_large))(x),
    ],
    ids=["grad", "jit of grad", "vmap", "vmap of a smaller one", "checkpoint", "export"],
)
def test_transformed(use):
    with pytest.raises(ShapeError, match="larger than memory can be") as caught:
        use(pnp.float32(1.0))
    assert "test_too_large.py" in str(caught.value)


def test_artifacts_called_with_sizes_that_make_one():
    (a,) = plait.export.symbolic_shape("a")
    made = plait.export.export(plait.jit(lambda x: pnp.broadcast_to(x, (a,) * 5).sum()))(
        plait.ShapeDtypeStruct((a,), "float32")
    )
    np.testing.assert_array_equal(made.call(np.ones(3, np.float32)), 3.0**5)
    for use in (made.call, plait.jit(made.call), plait.export.deserialize(made.serialize()).call):
        with pytest.raises(ShapeError, match="larger than memory can be"):
            use(np.ones(2**15, np.float32))


def test_artifacts_that_hold_one():
    """Whatever wrote it: a module's types are looked at before the compiler sees it."""
    made = plait.export.export(plait.jit(lambda x: pnp.broadcast_to(x, (2**20, 2**19)).sum()))(
        plait.ShapeDtypeStruct((), "float32")
    )
    text = made.mlir_module()
    assert "1048576x524288" in text
    with lock:
        module = mlir.bindings().ir.Module.parse(
            text.replace("1048576x524288", "1099511627776x1099511627776"), mlir.bindings().context
        )
        with pytest.raises(ShapeError, match="larger than memory can be"):
            mlir.expect_countable(module)
