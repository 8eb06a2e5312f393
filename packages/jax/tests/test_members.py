"""JAX's attributes of Plait's classes: arrays, tracers, types, programs, stages and equations.

Invariant: the expected values are JAX's, written down here, or numpy's.
"""

import copy
import importlib.util
import pickle
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait.ext.values import add_members

X = np.ones((2, 3), np.float32)

CORE_ALONE = """
import plait
program = plait.make_program(lambda x: x)(1.0)
for name in ("jaxpr", "invars", "outvars", "constvars"):
    assert not hasattr(program, name), name
for name in ("to_tangent_aval", "at_least_vspace", "strip_weak_type"):
    assert not hasattr(plait.typeof(1.0), name), name
assert not hasattr(plait.numpy.ones(2), "device_buffer")
assert type(plait.numpy.ones(2)).__module__.startswith("plait")
assert not hasattr(plait.jit(lambda x: x).trace(1.0), "jaxpr")
"""


def test_the_core_alone_has_none():
    subprocess.run([sys.executable, "-c", CORE_ALONE], check=True, env={"PLAIT_JAX": "0"})


def test_of_programs(jax):
    held = jax.numpy.arange(3.0)
    program = plait.make_program(lambda x: plait.lax.sin(x) * held)(X[0])
    jaxpr = program.jaxpr
    assert isinstance(jaxpr, jax.extend.core.Jaxpr)
    assert isinstance(program.closed_jaxpr, jax.extend.core.ClosedJaxpr)
    assert [v.aval.shape for v in program.invars] == [(3,)] and program.invars == jaxpr.invars
    assert program.outvars == jaxpr.outvars == jaxpr.eqns[-1].outvars
    assert program.constvars == jaxpr.constvars and len(program.constvars) == 1
    assert [e.primitive for e in jaxpr.eqns] == [jax.lax.sin_p, jax.lax.mul_p]
    assert program.closed_jaxpr.consts[0] is held
    assert "test_members.py" in jax.extend.source_info_util.summarize(program.eqns[0].source_info)


def test_of_stages(jax):
    traced = jax.jit(lambda x, y: {"a": x + y}).trace(X, 2.0)
    assert traced.jaxpr.eqns[-1].primitive is jax.lax.add_p
    assert len(traced.jaxpr.in_avals) == 2
    (got,) = jax.core.eval_jaxpr(traced.jaxpr, [], X, 2.0)
    np.testing.assert_array_equal(got, X + 2)


def test_of_types(jax):
    aval = jax.typeof(jax.numpy.ones(2))
    assert aval.to_tangent_aval() == aval.at_least_vspace() == aval.to_cotangent_aval() == aval
    assert jax.typeof(jax.numpy.arange(2)).to_tangent_aval().dtype == jax.float0
    weak = jax.typeof(1.0)
    assert weak.weak_type and not weak.strip_weak_type().weak_type
    assert weak.strip_weak_type().update_weak_type(True) == weak
    assert not aval.mat.varying and not aval.manual_axis_type.unreduced and not aval.mat.reduced
    assert aval.str_short() == "float32[2]" and aval.str_short(short_dtypes=True) == "f32[2]"


def test_of_arrays(jax):
    x = jax.numpy.asarray(X)
    assert x._committed is False
    if importlib.util.find_spec("plait_sharding") is not None:
        assert jax.device_put(X, jax.devices()[0])._committed is True
        np.testing.assert_array_equal(x.device_buffer, X)
    assert isinstance(x._value, np.ndarray)


def test_values_are_copied_and_read_elsewhere(jax, tmp_path):
    x = jax.numpy.asarray(X)
    assert copy.deepcopy(x).tolist() == X.tolist()
    assert pickle.loads(pickle.dumps(jax.Array)) is jax.Array is plait.Array
    (tmp_path / "x").write_bytes(pickle.dumps({"x": x, "weak": jax.numpy.asarray(1.0)}))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))['x'].tolist())"
    ask = [sys.executable, "-c", code, str(tmp_path / "x")]
    out = subprocess.check_output(ask, text=True, env={"PLAIT_JAX": "0"})
    assert out.strip() == str(X.tolist())


def test_a_member_is_not_replaced():
    with pytest.raises(plait.ext.errors.ArgumentError, match="Array has an attribute 'sum'") as e:
        add_members(plait.Array, {"new_here": None, "sum": property(lambda x: 3)})
    assert "not replaced" in e.value.fix and not hasattr(plait.Array, "new_here")
    assert plait.numpy.ones(2).sum() == 2
