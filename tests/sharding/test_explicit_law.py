"""The law of the table of explicit axes, of every operation of core and its library; rules that can
not be right are refused where they are asked."""

import itertools

import numpy as np
import pytest

from plait._core.primitive import primitives
from plait._ops import families  # noqa: F401  (it defines the primitives)
from plait.ext.ir import primitive
from plait.ext.values import from_numpy
from plait.testing.references import all_references
from plait_numpy.primitives import former_names  # noqa: F401  (it defines the library's)
from plait_sharding import AxisType, NamedSharding, P, ShardingTypeError
from plait_sharding.ext import explicit_rules
from plait_sharding.laws import explicit_law
from plait_sharding.mesh import AbstractMesh
from plait_testing.ext import Inapplicable

KNOWN = {
    name: known
    for name, known in all_references().items()
    if known.through is None
    and explicit_law.applies(primitives()[name])
    and primitives()[name].ambient is None  # of axes that shard_map binds: tested there
}


def test_the_table_speaks_of_most():
    assert len(KNOWN) > 150


@pytest.mark.parametrize("name", KNOWN)
def test_every_operation_of_core_keeps_the_law(name):
    prim = primitives()[name]
    for sample in itertools.islice(KNOWN[name].samples(prim), 6):
        try:
            assert explicit_law(prim, [np.asarray(x) for x in sample.args], sample.params)
        except Inapplicable:
            pass


def test_no_rule_can_divide_two_axes_over_the_same():
    @primitive("law.halved")
    def halved(x):
        """Every other row."""
        return x.with_shape((x.shape[0] // 2, *x.shape[1:]))

    @explicit_rules.rule(halved)
    def _(avals, outs):
        return ("pieces",), ("pieces",)

    x = np.ones((8, 2), np.float32)
    assert explicit_law(halved, [x], {}) == 2
    mesh = AbstractMesh((2,), ("pieces",), AxisType.Explicit).of_first_devices()
    said = NamedSharding(mesh, P("pieces")).explicit
    with pytest.raises(ShardingTypeError, match="twice"):
        halved.infer((from_numpy(x).aval.with_sharding(said),), {})


def test_without_an_axis_that_can_be_divided_nothing_is_asked():
    with pytest.raises(Inapplicable):
        explicit_law(primitives()["core.sin"], [np.ones(3, np.float32)], {})
