"""Programs of sizes known by name: exported once for all sizes, saved, read, and run at some.

Invariant: results are those of the function itself, called with arrays of these sizes; what depends
on a size in a way that no program for all sizes can is refused, and the error says what to write.
"""

import numpy as np
import pytest

import plait
from plait.errors import ShapeError, UndecidedDim
from plait_export import deserialize, export

from .symbolic_programs import PROGRAMS

REFUSED = {
    "fft": (ShapeError, "fft over n elements can not be compiled for all sizes at once"),
    "spec_square": (UndecidedDim, r"sizes do not determine a: a\*a"),
    "eq_dims_true": (UndecidedDim, "is b == c. It depends"),
    "b_eq_1": (UndecidedDim, "is b == 1. It depends"),
    "squeeze_expand": (UndecidedDim, "whether axis 0 is one depends: its size is b"),
}
"""Of these nothing is exported."""
LARGE = {"rand_gamma", "rand_gamma_dist"}
"""Programs that are compiled for a minute; `test_polymorphic` has what they are made of."""


@pytest.mark.feature("E05", "E07")
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in {*REFUSED, *LARGE}])
def test_the_artifact_does_what_the_function_does(name):
    program = PROGRAMS[name]
    exported = deserialize(export(program.fun)(*program.types()).serialize())
    for sizes in program.sizes[:2]:
        xs = program.arguments(sizes, seed=1)
        found, wanted = exported.call(*xs), plait.jit(program.fun)(*xs)
        same(plait.tree.leaves(found), plait.tree.leaves(wanted))


def same(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape and got.dtype == want.dtype
        kind = np.complex128 if want.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_program_for_all_sizes_does_is_refused(name):
    error, text = REFUSED[name]
    with pytest.raises(error, match=text) as e:
        export(PROGRAMS[name].fun)(*PROGRAMS[name].types())
    assert e.value.fix
