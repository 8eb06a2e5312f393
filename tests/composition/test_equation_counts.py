"""Gradients of the benchmark's models have no more equations than a peer's.

The bounds are numbers of equations of JAX 0.10.2's jaxprs of the same models, calls counted as what
they call.
"""

import importlib.util
from pathlib import Path

import pytest

import plait
from plait._simplify import simplify
from plait.ext.ir import inline_calls, programs_in
from plait.ext.ops.control_flow import call

PEER = {
    "mlp_grad": 58, "vmap_grad_mlp": 47, "tf12_step_scanned": 399, "convnet_grad": 834,
    "hessian_mlp": 150, "jvp_while": 100, "grad_scan_cond": 40, "second_order_hvp": 208,
    "grad_inner_jits": 382,
}  # fmt: skip


def loaded(name):
    path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark():
    return loaded("workloads").MODELS, loaded("measuring").namespace("plait")


def equations(program):
    return sum(
        (e.prim is not call) + sum(map(equations, programs_in(e.params))) for e in program.eqns
    )


@pytest.mark.parametrize("name", PEER)
def test_no_more_equations_than_the_peer(name, benchmark):
    models, lib = benchmark
    f, args = models[name](lib)
    program = plait.make_program(f)(*args)
    assert equations(simplify(inline_calls(program))) <= PEER[name]
