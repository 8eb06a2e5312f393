"""Names that do not exist: the closest name of a module, and what other libraries call a method."""

import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import ArgumentError, MissingAttribute, MissingPlugin, OperandTypeError

X = pnp.asarray(np.float32([1, 2, 3]))


@pytest.mark.parametrize(("module", "name", "meant"), [
    (plait, "evalshape", "plait.eval_shape"), (plait.lax, "cnd", "plait.lax.cond"),
    (plait.lax, "whileloop", "plait.lax.while_loop"),
])  # fmt: skip
def test_the_closest_name(module, name, meant):
    with pytest.raises(MissingPlugin, match="did you mean") as e:
        getattr(module, name)
    assert meant in str(e.value)
    assert not hasattr(module, name)


def test_errors_have_the_name_that_users_import():
    with pytest.raises(MissingPlugin) as e:
        _ = plait.qqqqqq
    assert (type(e.value).__module__, pickle.loads(pickle.dumps(e.value)).fix) == (
        "plait.errors", e.value.fix
    )  # fmt: skip
    assert {getattr(plait.errors, n).__module__ for n in plait.errors.__all__} == {"plait.errors"}


def test_a_name_like_no_other():
    with pytest.raises(MissingPlugin, match=r"dir\(plait\) lists"):
        _ = plait.qqqqqq


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
@pytest.mark.parametrize(("name", "here"), [
    ("unsqueeze", "expand_dims"), ("add_", "arrays do not change"), ("backward", "plait.grad"),
    ("detach", "stop_gradient"), ("cuda", "device_put"), ("numel", "x.size"), ("mm", "x @ y"),
    ("permute", "transpose"), ("masked_fill", "plait.numpy.where"), ("topk", "plait.lax.top_k"),
])  # fmt: skip
def test_methods_of_other_libraries(run, name, here):
    with pytest.raises(MissingAttribute, match=here) as e:
        run(lambda x: getattr(x, name)())(X)
    assert isinstance(e.value, AttributeError)
    assert __file__ in str(e.value)


def test_python_suggests_methods():
    with pytest.raises(AttributeError) as e:
        _ = X.reshap
    assert e.value.name == "reshap"
    assert e.value.obj is X  # which it compares with dir(X)
    assert "reshape" in dir(X)
    assert not hasattr(X, "nothing_like_it")
    assert not hasattr(X, "__nothing__")


@pytest.mark.parametrize("sizes", [(3, 1), (3,), ((3, 1),)])
def test_view_takes_a_dtype(sizes):
    with pytest.raises(OperandTypeError, match="reshape"):
        X.view(*sizes)


def test_one_array_donated_twice():
    with pytest.raises(ArgumentError, match=r"x\.copy\(\)"):
        plait.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(X, X)


@pytest.mark.parametrize(
    "name, fix",
    [("optim", "import optax"), ("tensor", "plait.numpy.array"), ("no_grad", "plait.grad")],
)
def test_names_at_the_top_of_other_libraries_say_what_to_write(name, fix):
    with pytest.raises(MissingPlugin, match=f"plait has no '{name}'") as e:
        getattr(plait, name)
    assert fix in e.value.fix
