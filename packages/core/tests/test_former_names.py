"""Names of primitives that left the namespace `core`: what earlier releases wrote is read.

Invariant: the names are those that release 0.2.1 wrote, listed here by hand.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait._core.primitive import registered

MOVED = {
    "linalg": "cholesky lu pivots_to_permutation geqrf geqp3 householder_product ormqr qr "
    "sylvester sqrtm det slogdet pinv lstsq triangular_solve tridiagonal_solve solve eigh svd eig "
    "schur hessenberg tridiagonal",
    "special": "fresnel sici zeta polygamma lbeta bessel_i0e bessel_i1e log_ndtr ndtri erfcx dawsn "
    "owens_t hyp1f1 hyp2f1 igamma igammac igamma_grad_a random_gamma_grad "
    "regularized_incomplete_beta expn expi spence wofz bessel_j random_gamma",
    "nn": "attention attention_tangent attention_cotangent",
}
CASES = [(space, name) for space, names in MOVED.items() for name in names.split()]


def test_there_are_as_many_as_left():
    assert len(CASES) == 51


@pytest.mark.parametrize("space, name", CASES)
def test_each_is_found_by_its_former_name(space, name):
    now = registered(f"{space}.{name}")
    assert now is not None and now.name == f"{space}.{name}"
    assert registered(f"core.{name}") is now and now.formerly == (f"core.{name}",)


def test_a_text_of_an_earlier_release():
    """Every case in one program, and what it computes."""
    p = plait.text.parse("""
    f(%0: f32[2,2], %1: f32[3]) {
      %2: f32[2,2] = core.cholesky(%0)
      %3: f32[3] = core.spence(%1)
      %4: f32[3] = core.sin(%3)
      return %2, %4
    }
    """)
    assert [e.prim.name for e in p.eqns] == ["linalg.cholesky", "special.spence", "core.sin"]
    x = np.float32([[2, 1], [1, 2]])
    factor, _ = plait.ext.evaluate(p, [x, np.ones(3, np.float32)])
    np.testing.assert_allclose(factor, np.linalg.cholesky(x), rtol=1e-6)
    with pytest.raises(plait.errors.ProgramError, match="there is no primitive 'core.cholesk'"):
        plait.text.parse("f(%0: f32[2,2]) { %1: f32[2,2] = core.cholesk(%0) return %1 }")


FRESH = """
import sys, plait
{start}
loaded = [n for n in sys.modules if n.startswith("plait_numpy.primitives.linalg.")]
print(bool(loaded), prim, prim.name)
"""


TEXT = "f(%0: f32[2,2]) { %1: f32[] = core.det(%0) return %1 }"
AGAIN = f"prim = plait.text.parse({TEXT!r}).eqns[0].prim"


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "start", [AGAIN, "prim = plait.ext.ir.registered('core.det')",
              "from plait._core.primitive import registered as r; prim = r('linalg.det')"]
)  # fmt: skip
def test_a_process_that_has_not_loaded_it(start):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH.format(start=start)],
        capture_output=True, text=True, env=dict(os.environ), timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "linalg.det", "linalg.det"], done.stderr
