"""Errors have the classes by which Python and array programs distinguish causes.

Invariant: each error here is caught by its builtin class and by its class in `plait.errors`.
"""

from typing import Any

import numpy as np
import pytest

import plait
from plait import errors, lax

pnp = plait.numpy
FAST = {"xla_cpu_enable_fast_math": True}


def donated_twice():
    x = pnp.ones(3)
    plait.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))(x, x)


def donated_and_read():
    x = pnp.ones(3)
    plait.jit(lambda x, y: x["a"] + y, donate_argnums=0)({"a": x}, x)


def no_such_option():
    plait.jit(lambda x: x + 1, compiler_options={"xla_no_such_flag": 1})(1.0)


def no_such_value():
    plait.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": "maybe"})(1.0)


def devices_are_counted():
    pnp.ones(3).block_until_ready()
    plait.config.cpu_devices = plait.device_count() + 1


@pytest.mark.parametrize(
    ("wrong", "builtin", "kind"),
    [
        (donated_twice, RuntimeError, errors.RuntimeRefusal),
        (donated_and_read, RuntimeError, errors.RuntimeRefusal),
        (no_such_option, RuntimeError, errors.RuntimeRefusal),
        (no_such_value, RuntimeError, errors.RuntimeRefusal),
        (devices_are_counted, RuntimeError, errors.LateSetting),
    ],
)
def test_an_error_is_caught_by_its_builtin_class(wrong, builtin, kind):
    with pytest.raises(builtin) as caught:
        wrong()
    assert isinstance(caught.value, kind) and caught.value.fix


def test_the_runtime_prints_nothing_of_memory_that_is_donated_twice(capfd):
    """A first call of its form is refused before the runtime gets it."""
    for wrong in (donated_twice, donated_and_read):
        with pytest.raises(errors.ArgumentError, match="another argument uses it too.*`y`"):
            wrong()
    assert "donate" not in capfd.readouterr().err


class Unequal:
    """A static value whose `__eq__` raises."""

    def __init__(self, error):
        self.error = error

    def __hash__(self):
        return 7

    def __eq__(self, other):
        raise self.error


@pytest.mark.parametrize("error", [NotImplementedError("none"), KeyError("k"), TypeError("t")])
def test_static_values_that_cannot_be_compared_are_a_value_error(error):

    def twice(x, how):
        return x * 2

    for f in (plait.jit(twice, static_argnums=1), plait.jit(twice, static_argnames="how")):
        assert f(1.0, how=Unequal(error)) == 2
        with pytest.raises(ValueError, match="Unequal") as caught:
            f(1.0, how=Unequal(error))
        assert isinstance(caught.value, errors.OperandTypeError)
        assert caught.value.__cause__ is error


def test_options_of_a_jitted_function_inside_another_are_refused():
    inner = plait.jit(lambda x: x + 1, compiler_options=FAST)
    outers = (
        plait.jit(lambda x: inner(x) * 2),
        plait.jit(lambda x: inner(x) * 2, compiler_options=FAST),
        lambda x: lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0],
    )
    for outer in outers:
        for _ in range(2):
            with pytest.raises(ValueError, match="compiler_options"):
                outer(1.0)
    assert inner(1.0) == 2
    shape = plait.eval_shape(lambda x: inner(x) * 2, np.float32(1)).shape
    assert shape == () and plait.make_program(inner)(1.0).out_avals[0].shape == ()


def test_clear_caches_drops_what_jitted_functions_hold():
    traced = []

    @plait.jit
    def f(x):
        traced.append("f")
        return x + 1

    def static(x, n):
        traced.append("static")
        return x * n

    g = plait.jit(static, static_argnums=1)
    for _ in range(2):
        assert f(1.0) == 2 and f(pnp.ones(3)).shape == (3,) and g(2.0, 3) == 6
    assert traced == ["f", "f", "static"]
    plait.clear_caches()
    for _ in range(2):
        assert f(1.0) == 2 and f(pnp.ones(3)).shape == (3,) and g(2.0, 3) == 6
    assert traced == ["f", "f", "static"] * 2


@pytest.mark.parametrize("where", ["in_shardings", "out_shardings"])
@pytest.mark.parametrize("wrong", ["x", 1, [None, "x"], {"a": 2.5}])
def test_what_is_not_a_placement_is_refused_where_jit_is_called(where: Any, wrong: Any):
    with pytest.raises(errors.TreeMismatch, match=f"{where}.* is not a placement"):
        plait.jit(lambda x: x, **{where: wrong})


GATHER = {"offset_dims": (), "start_index_map": (0, 1)}
SCATTER = {"update_window_dims": (), "scatter_dims_to_operand_dims": (0, 1)}


def test_axes_of_gather_and_scatter_are_in_order():
    x: Any = pnp.zeros((3, 4))
    i = pnp.asarray(np.int32([[1, 2], [0, 3]]))
    read = lax.GatherDimensionNumbers(collapsed_slice_dims=(0, 1), **GATHER)
    assert lax.gather(x, i, read, (1, 1)).shape == (2,)
    with pytest.raises(TypeError, match=r"\(1, 0\).*in order"):
        lax.gather(x, i, read._replace(collapsed_slice_dims=(1, 0)), (1, 1))
    written = lax.ScatterDimensionNumbers(inserted_window_dims=(0, 1), **SCATTER)
    ones = pnp.ones(2)
    assert lax.scatter(x, i, ones, written).sum() == 2
    for scatter in (lax.scatter, lax.scatter_add, lax.scatter_mul, lax.scatter_min):
        with pytest.raises(TypeError, match=r"\(1, 0\).*in order"):
            scatter(x, i, ones, written._replace(inserted_window_dims=(1, 0)))


def test_parts_of_weak_numbers_are_weak():
    for made in (lax.conj(1.0), lax.conj(1j), lax.complex(1.0, 2.0), lax.real(1j), lax.imag(1j)):
        assert made.weak_type, made
    assert not lax.conj(np.float32(1)).weak_type and not lax.complex(np.float32(1), 2.0).weak_type
    assert lax.conj(pnp.ones(2)).dtype == np.complex64
