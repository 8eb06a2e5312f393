"""Operations on integers that the compiler can compute itself, since it finds their operands.

The oracle is Python's integers, wrapped to the type.

Invariant: each program holds its operand as a constant, behind a selection that always takes it.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

SIGNED = ("int8", "int16", "int32", "int64")
DTYPES = (*SIGNED, *("u" + name for name in SIGNED))


def extremes(dtype):
    info = np.iinfo(dtype)
    near = [0, 1, 2, info.max // 2, info.max // 2 + 1, info.max - 1, info.max]
    return near + ([info.min, info.min + 1, info.min // 2, -2, -1] if info.min else [])


def unsigned(v, bits):
    return v & (2**bits - 1)


def wrapped(v, dtype):
    bits = np.iinfo(dtype).bits
    v = unsigned(v, bits)
    return v - 2**bits if np.iinfo(dtype).min and v >= 2 ** (bits - 1) else v


UNARY = {
    "clz": lambda v, bits: bits - unsigned(v, bits).bit_length(),
    "population_count": lambda v, bits: unsigned(v, bits).bit_count(),
    "bitwise_not": lambda v, bits: ~v,
    "neg": lambda v, bits: -v,
    "abs": lambda v, bits: abs(v),
    "sign": lambda v, bits: (v > 0) - (v < 0),
    "square": lambda v, bits: v * v,
}


@pytest.mark.parametrize("tier", ["fast", "full"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_constants(dtype, tier):
    bits = np.iinfo(dtype).bits
    with plait.enable_x64(True):
        kinds = [n for n in UNARY if bits and (dtype[0] == "i" or n not in ("abs", "sign", "neg"))]
        values = np.array(extremes(dtype), dtype)

        def program(x):
            seen = [pnp.where(x == x, v, x) for v in values]
            return {n: pnp.stack([getattr(lax, n)(c)[0] for c in seen]) for n in kinds}

        found = plait.jit(program, tier=tier)(np.arange(3, dtype=dtype))
    for name in kinds:
        want = [wrapped(UNARY[name](int(v), bits), dtype) for v in values]
        assert np.asarray(found[name]).tolist() == want, name
