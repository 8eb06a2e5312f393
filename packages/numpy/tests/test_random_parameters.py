"""Parameters of distributions that are complex: each sampler names the one that it refuses.

Samplers and their parameters are those of the module, read from the signatures.
"""

import inspect

import numpy as np
import pytest

import plait
from plait.errors import OperandTypeError

VALUES = {
    "a": 1.0, "alpha": np.ones(3, np.float32), "b": 1.0, "concentration": 1.0,
    "cov": np.eye(2, dtype=np.float32), "dfden": 2.0, "dfnum": 2.0, "df": 2.0, "lam": 1.0,
    "left": 0.0, "loc": 0.0, "logits": np.zeros(3, np.float32), "lower": -1.0, "maxval": 3,
    "mean": np.float32(1), "minval": 0, "mode": 0.5, "n": 3, "p": 0.5, "right": 1.0, "scale": 1.0,
    "sigma": 1.0, "upper": 1.0,
}  # fmt: skip
ONLY = {"multivariate_normal": {"mean": np.zeros(2, np.float32)}, "ball": {"d": 2},
        "multinomial": {"n": np.float32(3), "p": np.full(3, 1 / 3, np.float32)},
        "randint": {"shape": (2,)}}  # fmt: skip
NOT_DRAWN_FROM = {"choice", "key", "split", "fold_in", "categorical", "orthogonal"}


def cases():
    for name in plait.random.__all__:
        f = getattr(plait.random, name)
        if not callable(f) or name in NOT_DRAWN_FROM:
            continue
        parameters = inspect.signature(f).parameters
        if next(iter(parameters), None) != "key":
            continue
        drawn = [p for p in parameters if p in VALUES and (p != "mode" or name == "triangular")]
        for p in drawn:
            yield name, p, {q: ONLY.get(name, VALUES).get(q, VALUES[q]) for q in drawn}
    yield "categorical", "logits", {"logits": VALUES["logits"]}


@pytest.mark.parametrize(("name", "wrong", "values"), list(cases()))
def test_a_complex_parameter_is_named(name, wrong, values):
    f, more = getattr(plait.random, name), ONLY.get(name, {})
    fixed = {k: v for k, v in more.items() if k not in values}
    key = plait.random.key(0)
    f(key, **fixed, **values)  # it is right otherwise
    bad = values | {wrong: np.asarray(values[wrong]) * np.complex64(1 + 1j)}
    with pytest.raises(OperandTypeError, match=rf"`{wrong}` of random samples") as e:
        f(key, **fixed, **bad)
    assert f"{wrong}.real" in e.value.fix


def test_there_are_parameters():
    assert len({name for name, _, _ in cases()}) >= 20
