"""Programs of sizes known by name: exported once for all sizes, saved, read, and run at some.

Invariant: results are those of the function itself, called with arrays of these sizes; what depends
on a size in a way that no program for all sizes can is refused, and the error says what to write.
"""

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.errors import DimMismatch, ShapeError, UndecidedDim
from plait.ext.types import Aval
from plait_export import deserialize, export, symbolic_args_specs
from plait_export.errors import ArtifactError
from plait_export.portable import code_for

from .symbolic_programs import PROGRAMS

REFUSED = {
    "fft": (ShapeError, "fft over n elements cannot be compiled for all sizes at once"),
    "eq_dims_true": (UndecidedDim, "is b == c. It depends"),
    "b_eq_1": (UndecidedDim, "is b == 1. It depends"),
    "squeeze_expand": (UndecidedDim, "whether axis 0 is one depends: its size is b"),
}
"""Of these nothing is exported."""
LARGE = {"rand_gamma", "rand_gamma_dist"}
"""Programs that are compiled for a minute; `test_polymorphic` has what they are made of."""


@pytest.mark.sampled(16)
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


def test_a_size_is_found_from_its_square():
    """In the module, too, for who runs it without Plait; and what is no square is refused."""
    x = np.arange(12, dtype=np.float32)
    types = symbolic_args_specs(x, "3*a*a")
    f = lambda x: x.reshape(3, -1) + pnp.arange(x.shape[0] // 3, dtype=np.float32)  # noqa: E731
    exported = deserialize(export(f)(types).serialize())
    for a in (1, 2, 9, 300):
        x = np.arange(3 * a * a, dtype=np.float32)
        np.testing.assert_array_equal(exported.call(x), x.reshape(3, -1) + np.arange(a * a))
        np.testing.assert_array_equal(exported.specialize({"a": a}).call(x), exported.call(x))
    negative = export(lambda x: -x)(types).mlir_module_serialized
    for n in (6, 9, 24):
        with pytest.raises(DimMismatch, match=r"a size is \d+ where 3\*a\*a is expected"):
            exported.call(np.zeros(n, np.float32))
        with pytest.raises(ArtifactError, match=r"must have size 3\*a\*a, which is \d+; found"):
            code_for(negative, [Aval((n,), np.float32)], symbolic=True)
