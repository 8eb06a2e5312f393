"""Every primitive is judged by every law, or it is said why not.

Invariant: the tables of cases are read from the files beside this one; primitives and their rules
from what is installed.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest

import plait
from plait._core.primitive import primitives
from plait._plugins.metadata import declared, names
from plait.ext.errors import PlaitError
from plait.ext.rules import Discrete
from plait.ext.values import asarray
from plait.testing import coverage

FAMILIES = ("arrays", "elementwise", "matrices", "programs", "special")
"""The files whose tables have a case for each primitive."""
TABLES = [runpy.run_path(str(Path(__file__).with_name(f"test_{name}.py"))) for name in FAMILIES]


def judged(*tables):
    return {name.partition(",")[0] for t in TABLES for k in tables for name in t.get(k, {})}


USERS = "the rule is the user's"
KEYS = "keys and bits do not vary"
REFUSED = "it refuses to be differentiated"
OTHER_TESTS = {
    **dict.fromkeys(["autodiff.custom_vjp_call", "autodiff.custom_ivjp_call",
                     "autodiff.custom_lin", "batching.custom_vmap_call"], USERS),
    **dict.fromkeys(["autodiff.invertible_call", "autodiff.invertible_jvp",
                     "autodiff.forward_call"], "made by reverse mode; tested with it"),
    "export.call": "tested with what was exported",
    **dict.fromkeys(["piles.map", "piles.segmented", "nn.attention",
                     "nn.attention_tangent", "nn.attention_cotangent"], "tested with piles"),
    **dict.fromkeys(["sharding.shard_map", "sharding.constraint", "sharding.release",
                     "sharding.inspect", "sharding.transfer", "core.pvary"],
                    "tested on several devices"),
    **dict.fromkeys([f"core.random_{n}" for n in ("bits", "clone", "fold_in", "seed", "split")],
                    KEYS),
    "core.check": "tested with plait.checks",
    **dict.fromkeys(["core.wrap", "core.unwrap"], "of opaque elements; tested with them"),
}  # fmt: skip
CONSTANT = {
    **dict.fromkeys(["core.rng_bit_generator", "core.bitcast", "core.axis_index"],
                    "whole numbers and bits do not vary"),
    "core.iota": "it has no operands",
    "special.random_gamma": "the derivative of a sample is that of its quantile; tested as such",
}  # fmt: skip
UNMAPPED = {
    "core.host": "tested with its effects",
    "core.foreign": "tested with functions of others",
    "special.random_gamma": "tested with keys",
    "core.axis_index": "tested with collectives",
    "core.rng_bit_generator": "tested with keys",
    "core.threefry2x32": "tested with keys",
}


OURS = {f"plait-{name}" for name in ("core", "autodiff", "batching", "sharding", "export", "state")}


def is_ours(d):
    """Whether a package of this repository declares an entry point."""
    return d.distribution in OURS


def answered(table):
    group = "plait.primitives"  # others' samples and tests make some, too
    spaces = {n for n in names(group) if any(map(is_ours, declared(group, n)))}
    return {
        n
        for n, cell in coverage(table).items()
        if n.rpartition(".")[0] in spaces and cell not in ("missing", "not applicable")
    }


def test_every_derivative_is_judged():
    discrete = {p.name for p in primitives().values() if Discrete in p.traits}
    refused = set(REFUSALS) - judged("CASES")
    left = answered("jvp") - judged("CASES") - discrete - {*OTHER_TESTS, *CONSTANT} - refused
    assert not left, f"no case under tests/laws, and no reason: {sorted(left)}"
    assert answered("transpose") <= answered("jvp")


def test_every_batching_rule_is_judged():
    cells = judged("CASES", "DISCRETE", "MAPPED")
    left = answered("batching") - cells - {*OTHER_TESTS, *UNMAPPED}
    assert not left, f"no case under tests/laws, and no reason: {sorted(left)}"


def test_reasons_are_of_primitives():
    known = {p.name for p in primitives().values()}
    said = {*OTHER_TESTS, *CONSTANT, *UNMAPPED, *REFUSALS}
    cases = judged("CASES", "DISCRETE", "MAPPED")
    assert said | cases <= known, f"of nothing: {sorted((said | cases) - known)}"


@pytest.mark.parametrize("table", ["jet", "laplacian"])
def test_series_and_laplacians_are_of_everything_that_has_a_derivative(table):
    assert answered("jvp") <= answered(table)


# ---- what refuses --------------------------------------------------------------------------

M = np.array([[1.3, 0.4], [0.2, -1.1]])
V = np.array([0.5, -0.2])
REFUSALS = {
    "linalg.geqrf": ((M,), {}),
    "linalg.geqp3": ((M,), {}),
    "linalg.householder_product": ((M, V), {}),
    "linalg.hessenberg": ((M,), {}),
    "linalg.tridiagonal": ((M,), {"lower": True}),
    "linalg.schur": ((M,), {"vectors": True}),
    "core.host": ((M,), {"f": np.sin, "outs": (asarray(M).aval,), "effect": None, "whole": False}),
    "core.foreign": ((M,), {
        "target": "lapack_dpotrf_ffi", "outs": (asarray(M).aval, asarray(np.int32(0)).aval),
        "config": "{uplo = 76 : ui8}", "acts": False, "vmap_method": None,
        "in_layouts": ((0, 1),), "out_layouts": ((0, 1), ()), "aliases": (),
    }),
    "special.polygamma": ((V, V), {}),
    "special.zeta": ((V, V), {}),
    "special.expn": ((V, V), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_what_to_write(name):
    args, params = REFUSALS[name]
    f = lambda *xs: primitives()[name].bind(*xs, **params)  # noqa: E731
    one = (asarray(x) for x in args)
    given = tuple(one)
    ways = {
        "jvp": lambda: plait.jvp(f, given, given),
        "vjp": lambda: plait.vjp(f, *given),
        "jet": lambda: plait.jet(f, given, tuple([g, g] for g in given)),
        "fwd_laplacian": lambda: plait.fwd_laplacian(f)(*given),
    }
    for way in ways.values():
        with pytest.raises(PlaitError) as caught:
            way()
        assert caught.value.fix and "derivative" in caught.value.what
        assert "test_complete.py" in str(caught.value)
