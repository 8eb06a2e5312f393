"""The conformance law of the table of explicit axes, for `plait.testing`.

    dividing an operand over an explicit axis leaves the types of an operation's results unchanged
    except for an even division; otherwise it raises an error with a fix

Invariant: the law only uses types; no device is needed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Primitive
from plait.ext.rules import expand_rules
from plait.ext.trace import as_list
from plait.ext.types import Aval
from plait.ext.values import from_numpy
from plait_testing.ext import Inapplicable

from .explicit_types import ShardingTypeError, entries_of, explicit_rules
from .mesh import AbstractMesh, AxisType, PartitionSpec
from .named_shardings import NamedSharding

__all__ = ["explicit_law"]

_PIECES = 2


def explicit_law(prim: Primitive, args: Sequence[np.ndarray], params: dict[str, Any]) -> int:
    """Check an operation's results, with each axis of each operand divided in two where possible.

    Results must have their types without the division.  Each axis of a result must be divided
    evenly, and the mesh axis may divide only one of them.

    Returns the number of comparisons.  Raises Inapplicable if no operand has an axis to divide.
    """
    mesh = AbstractMesh((_PIECES,), ("pieces",), AxisType.Explicit).of_first_devices()
    plain = [from_numpy(x).aval for x in args]
    want = as_list(prim.infer(tuple(plain), params))
    count = 0
    for i, a in enumerate(plain):
        for axis in [k for k, d in enumerate(a.shape) if d and d % _PIECES == 0]:
            entries = [None] * axis + ["pieces"]
            said = NamedSharding(mesh, PartitionSpec(*entries)).explicit
            divided = [a.with_sharding(said) if k == i else b for k, b in enumerate(plain)]
            try:
                found = as_list(prim.infer(tuple(divided), params))
            except ShardingTypeError as e:
                assert e.fix, f"{prim} refuses {divided}, and does not say what to write"
            else:
                _expect_even(prim, divided, found, want)
            count += 1
    if not count:
        raise Inapplicable("no axis can be divided in two")
    return count


def _expect_even(
    prim: Primitive, ins: Sequence[Aval], found: Sequence[Aval], want: Sequence[Aval]
) -> None:
    for out, plain in zip(found, want, strict=True):
        assert out.with_sharding(None) is plain, f"{prim} of {ins} is {out}, and {plain} undivided"
        over = entries_of(out)
        assert sum(map(len, over)) < _PIECES, (
            f"{prim} of {ins} is {out}: one axis of the mesh twice"
        )
        for d, names in zip(out.shape, over, strict=True):
            assert not names or d % _PIECES == 0, f"{prim} of {ins} is {out}, which is not even"


def _is_said(prim: Primitive) -> bool:
    """Return whether the law applies: whether the primitive has a rule or an expansion.

    Operations with programs are divided as their programs are.  Of other operations without either,
    divided operands are refused by name.
    """
    if prim.higher is not None:
        return False
    return explicit_rules.find(prim) is not None or expand_rules.find(prim) is not None


explicit_law.applies = _is_said  # type: ignore[attr-defined]
