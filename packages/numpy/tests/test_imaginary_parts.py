"""No function drops an imaginary part without a word.

Invariants: of complex operands the result is complex wherever numpy's is; a complex number that
would become part of an array of real numbers is refused.  Conversions to a dtype that the user
names are neither.
"""

import copy
import warnings

import numpy as np
import pytest

import plait
import plait.image
import plait.lax
import plait.numpy as pnp
import plait.scipy.interpolate
import plait.scipy.ndimage
import plait.scipy.signal
from plait.errors import TypeRule

RNG = np.random.default_rng(0)
C = (RNG.normal(size=4) + 1j * RNG.normal(size=4)).astype(np.complex64)
R = C.real.copy()
M = (RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4))).astype(np.complex64)
I = np.array([0, 2, 1, 3], np.int32)  # noqa: E741
B = np.array([True, False, True, True])
OPERANDS = {
    "a vector": (C,),
    "a matrix": (M,),
    "two": (C, C[::-1]),
    "two matrices": (M, M.T),
    "the first of two": (C, R),
    "the second of two": (R, C),
    "the last of three": (R, I, C),
    "by a mask": (B, R, C),
    "at positions": (C, I),
    "several": ((R, C),),
    "a number": (C, 2),
    "a complex number": (R, 1j),
    "between": (np.linspace(0, 1, 3), np.linspace(0, 1, 4), C),
}
NOT_OF_NUMBERS = {"diag_indices", "empty", "empty_like", "ones_like", "zeros_like", "ufunc"}


def complex_results(name, operands):
    """Return True if numpy's results of these operands are complex; None if it refuses them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            out = getattr(np, name)(*copy.deepcopy(operands))
        except Exception:
            return None
    leaves = out if isinstance(out, tuple | list) else [out]
    if not all(isinstance(v, np.ndarray | np.generic) for v in leaves):
        return None
    return [v.dtype.kind == "c" for v in leaves]


def test_results_are_complex_where_numpys_are():
    names = [
        n for n in dir(pnp)
        if n in dir(np) and callable(getattr(np, n)) and not isinstance(getattr(np, n), type)
    ]  # fmt: skip
    compared, lost = 0, []
    for name in names:
        if name.startswith("_") or name in NOT_OF_NUMBERS:
            continue
        for kind, operands in OPERANDS.items():
            want = complex_results(name, operands)
            if want is None or not any(want):
                continue
            try:
                out = plait.eval_shape(lambda: getattr(pnp, name)(*operands))
            except Exception:
                continue  # It is refused, or needs values.
            leaves = out if isinstance(out, tuple | list) else [out]
            compared += 1
            if [np.dtype(v.dtype).kind == "c" for v in leaves] != want:
                lost.append((name, kind))
    assert not lost
    assert compared > 300


Z = 1 + 2j
WRITES = {
    "nan_to_num": lambda z: pnp.nan_to_num(R, nan=z),
    "nan_to_num inf": lambda z: pnp.nan_to_num(R, posinf=z),
    "nan_to_num -inf": lambda z: pnp.nan_to_num(R, neginf=z),
    "nan_to_num by parts": lambda z: pnp.nan_to_num(C, nan=z),
    "pad": lambda z: pnp.pad(R, 1, constant_values=z),
    "pad each": lambda z: pnp.pad(R, 1, constant_values=((0, z),)),
    "pad ramp": lambda z: pnp.pad(R, 1, mode="linear_ramp", end_values=z),
    "full_like": lambda z: pnp.full_like(R, z),
    "insert": lambda z: pnp.insert(R, 1, z),
    "put": lambda z: pnp.put(R, 1, z, inplace=False),
    "place": lambda z: pnp.place(R, R > 0, z, inplace=False),
    "put_along_axis": lambda z: pnp.put_along_axis(R, I[:1], z, 0, inplace=False),
    "fill_diagonal": lambda z: pnp.fill_diagonal(M.real, z, inplace=False),
    "ediff1d end": lambda z: pnp.ediff1d(R, to_end=z),
    "ediff1d begin": lambda z: pnp.ediff1d(R, to_begin=z),
    "piecewise": lambda z: pnp.piecewise(R, [R > 0], [z, 0.0]),
    "piecewise function": lambda z: pnp.piecewise(R, [R > 0], [lambda v: v * z, 0.0]),
    "piecewise rest": lambda z: pnp.piecewise(R, [R > 0], [0.0, z]),
    "take": lambda z: pnp.take(R, I, mode="fill", fill_value=z),
    "take_along_axis": lambda z: pnp.take_along_axis(R, I, 0, mode="fill", fill_value=z),
    "polyint": lambda z: pnp.polyint(R, k=z),
    "cov": lambda z: pnp.cov(M.real, aweights=np.full(4, z)),
    "unique": lambda z: pnp.unique(R, size=9, fill_value=z),
    "union1d": lambda z: pnp.union1d(R, R, size=9, fill_value=z),
    "setdiff1d": lambda z: pnp.setdiff1d(R, R[:1], size=9, fill_value=z),
    "nonzero of none": lambda z: pnp.nonzero(R[:0], size=9, fill_value=z),
    "nonzero": lambda z: pnp.nonzero(R, size=9, fill_value=z),
    "at.get": lambda z: pnp.asarray(R).at[I].get(mode="fill", fill_value=z),
    "at.set": lambda z: pnp.asarray(R).at[I].set(z),
    "at.add": lambda z: pnp.asarray(R).at[I].add(z),
    "at.multiply": lambda z: pnp.asarray(R).at[I].multiply(z),
    "convolve2d": lambda z: plait.scipy.signal.convolve2d(M.real, M.real, fillvalue=z),
    "map_coordinates": lambda z: plait.scipy.ndimage.map_coordinates(M.real, [R, R], 1, cval=z),
    "interpolator": lambda z: plait.scipy.interpolate.RegularGridInterpolator(
        (np.arange(4.0),), R, bounds_error=False, fill_value=z
    )(np.array([9.0])),
    "lax.pad": lambda z: plait.lax.pad(R, z, [(1, 1, 0)]),
    "lax.full_like": lambda z: plait.lax.full_like(R, z),
    "lax.reduce": lambda z: plait.lax.reduce(R, z, plait.lax.add, (0,)),
    "lax.reduce_window": lambda z: plait.lax.reduce_window(
        R, z, plait.lax.add, (2,), (1,), "VALID"
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_complex_numbers_are_not_written_into_real_arrays(name):
    WRITES[name](2 if "nonzero" in name else 2.0)  # A real number is taken,
    for z in (Z, np.complex64(Z), pnp.asarray(Z)):  # and a complex one is not.
        with pytest.raises(TypeRule) as caught:
            WRITES[name](z)
        assert "c64" in str(caught.value) or "complex" in str(caught.value)


def test_fractions_are_not_starting_points_of_integers():
    for call in (
        lambda v: plait.lax.pad(I, v, [(1, 1, 0)]),
        lambda v: plait.lax.reduce(I, v, plait.lax.add, (0,)),
    ):
        assert call(2).dtype == np.int32
        with pytest.raises(TypeRule, match="with the number"):
            call(0.5)


def test_a_fill_that_does_not_fit_is_refused():
    x = pnp.asarray(I.astype(np.int8))
    assert int(x.at[pnp.asarray(9)].get(mode="fill", fill_value=-7)) == -7
    with pytest.raises(TypeRule, match="does not fit"):
        x.at[pnp.asarray(9)].get(mode="fill", fill_value=300)
