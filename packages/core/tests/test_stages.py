"""What stages of jitted functions and devices say of themselves.

Invariant: what is expected is written out, counted by hand, or what the arrays themselves have.
"""

import sys
import weakref

import numpy as np
import pytest

import plait
from plait.stages import ArgInfo

jnp = plait.numpy


def staged():
    f = plait.jit(
        lambda d, n, x: (d["a"] * n, x.sum()), static_argnums=1, donate_argnums=2, keep_unused=True
    )
    given = {"a": np.float32(2), "b": 1}, 3, jnp.ones((2, 5))
    return f, given, f.trace(*given)


def test_each_stage_knows_its_arguments_and_results():
    f, given, trace = staged()
    lowered = trace.lower()
    dynamic = ((given[0], given[2]), {})
    for stage in (trace, lowered, lowered.compile(), f.lower(*given)):
        assert stage.in_tree == plait.tree.structure(dynamic)
        assert stage.out_tree == plait.tree.structure((0, 0))
        assert stage.donate_argnums == (2,)
        assert [o.shape for o in stage.out_info] == [(), ()]
        (d, x), kwargs = stage.args_info
        assert kwargs == {}
        assert isinstance(x, ArgInfo)
        assert (x.shape, x.dtype, x.donated) == ((2, 5), np.float32, True)
        assert (d["b"].shape, d["b"].dtype, d["b"].donated) == ((), np.int32, False)
        shapes = plait.tree.map(lambda a: a.shape, stage.args_info)
        assert shapes == plait.tree.map(np.shape, dynamic)
    assert trace.fun_name == "<lambda>"


def test_lowered():
    lowered = plait.jit(lambda x, y: x @ y).lower(np.ones((2, 5)), np.ones((5, 3)))
    module = lowered.compiler_ir()
    assert "stablehlo.dot_general" in str(module)
    assert str(module) == str(lowered.compiler_ir("stablehlo"))
    computation = lowered.compiler_ir("hlo")
    assert computation.as_hlo_text() == lowered.as_text("hlo")
    assert computation.program_shape().result_shape().dimensions() == (2, 3)
    with pytest.raises(plait.errors.ArgumentError, match="dialect 'llvm'"):
        lowered.compiler_ir("llvm")
    assert lowered.cost_analysis()["flops"] == 2 * 2 * 5 * 3


def test_compiled():
    compiled = plait.jit(lambda x: x * 2).lower(jnp.ones(4)).compile()
    (module,) = compiled.runtime_executable().hlo_modules()
    assert module.to_string().startswith("HloModule")


def test_executables_take_what_they_were_compiled_for():
    compiled = plait.jit(lambda d, x: d["a"] - x).lower({"a": 1.0}, x=2.0).compile()
    assert float(compiled({"a": 5.0}, x=3.0)) == 2.0
    for args, kwargs in (
        ((5.0, {"a": 1.0}), {}),
        (([5.0, 1.0],), {}),
        (({"a": 1.0}, 2.0), {}),
        (({"b": 1.0},), {"x": 1.0}),
        ((), {}),
    ):
        with pytest.raises(plait.errors.TreeMismatch, match="another structure"):
            compiled(*args, **kwargs)
    with pytest.raises(plait.errors.ArgumentError, match="cannot be transformed"):
        plait.jit(lambda x: compiled({"a": x}, x=x))(1.0)


def test_devices():
    device = plait.devices()[0]
    assert device.process_index == plait.process_index() == 0
    assert device.local_hardware_id >= 0
    assert device.client.platform == device.platform
    assert device.client.device_count() == plait.device_count()
    assert device.default_memory() in device.addressable_memories()
    assert {m.device for m in device.addressable_memories()} == {device}
    assert len({m.kind for m in device.addressable_memories()}) >= 1
    for m in device.addressable_memories():
        assert device.memory(m.kind) == m
    with pytest.raises(plait.errors.PlacementError, match="no memory of the kind 'tape'"):
        device.memory("tape")
    stats = device.memory_stats()
    assert stats is None if device.platform == "cpu" else stats["bytes_in_use"] >= 0
    with pytest.raises(plait.errors.PlacementError, match="no device"):
        plait.Device(99, "cpu", "cpu").memory_stats()


def test_every_stage_knows_the_types_of_its_arguments():
    closed = np.ones(3, np.float32)
    staged = plait.jit(lambda x, n, *, y: (x + closed, y) * n, static_argnums=1).trace(
        1.0, 2, y={"a": np.ones(2)}
    )
    want = ((plait.typeof(plait.numpy.asarray(1.0)),), {"y": {"a": plait.typeof(np.ones(2))}})
    lowered = staged.lower()
    assert staged.in_avals == lowered.in_avals == lowered.compile().in_avals == want


@pytest.mark.parametrize("count", [1, 10, 50])
def test_python_calls_of_a_compiled_function(count):
    """The call, and the function made for its form: for any arguments."""
    compiled = plait.jit(lambda *xs: xs[0] + xs[-1]).lower(*[1.0] * count).compile()
    xs = [plait.numpy.asarray(1.0) for _ in range(count)]
    compiled(*xs)
    called = []

    def watch(frame, event, arg):
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        compiled(*xs)
    finally:
        sys.setprofile(None)
    assert len(called) == 2, called


def test_a_compiled_function_is_freed_with_its_last_name():
    compiled = plait.jit(lambda x: x + 1).lower(1.0).compile()
    compiled(1.0)
    gone = weakref.ref(compiled)
    del compiled
    assert gone() is None
