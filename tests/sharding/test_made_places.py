"""Where arrays lie that are made anew: on the device asked for, or beside a similar array.

Invariant: the devices of a result are compared with those given, and every function of the array
library that takes a device is called.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import NamedSharding
from plait import PartitionSpec as P

MAKERS = {
    "arange": (3,), "array": ([1.0],), "asarray": ([1.0],), "empty": (3,), "empty_like": (1.0,),
    "eye": (3,), "fft.fftfreq": (4,), "fft.rfftfreq": (4,), "frombuffer": None, "from_dlpack": None,
    "full": (3, 1.0), "full_like": (1.0, 2.0), "geomspace": (1.0, 2.0, 3), "identity": None,
    "linspace": (0.0, 1.0, 3), "logspace": (0.0, 1.0, 3), "ones": (3,), "ones_like": (1.0,),
    "zeros": (3,), "zeros_like": (1.0,), "copy": None, "astype": None,
}  # fmt: skip
"""Arguments of the functions that make arrays; None: they do not take a device in this form."""


def _with_device():
    for at, module in (("", pnp), ("fft.", pnp.fft)):
        for name in module.__all__:
            f = getattr(module, name)
            try:
                has = callable(f) and "device" in inspect.signature(f).parameters
            except ValueError:
                continue
            if has and not isinstance(f, type):
                yield at + name, f


def test_what_is_made_lies_on_the_device_asked_for():
    last = plait.local_devices()[-1]
    seen = 0
    for name, f in _with_device():
        args = MAKERS[name]
        if args is not None:
            assert f(*args, device=last).devices() == {last}, name
            seen += 1
    assert seen >= 12


LIKE = {
    "zeros_like": pnp.zeros_like, "ones_like": pnp.ones_like, "empty_like": pnp.empty_like,
    "full_like": lambda x, **k: pnp.full_like(x, 2.0, **k),
    "lax.full_like": lambda x, **k: plait.lax.full_like(x, 2.0, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_what_is_like_an_array_lies_beside_it(name):
    f, device = LIKE[name], plait.devices()[1]
    x = plait.device_put(np.ones((4, 4)), device)
    for shape in (None, (), (2,), (4, 4)):
        given = {} if shape is None else {"shape": shape}
        assert f(x, **given).devices() == {device}
    sharding = NamedSharding(plait.make_mesh((4, 2), ("x", "y")), P("x"))
    for like in (
        plait.device_put(np.ones((8, 4)), sharding),
        plait.ShapeDtypeStruct((8, 4), np.float32, sharding=sharding),
    ):
        assert f(like).sharding == sharding
        assert f(like, shape=(3,)).shape == (3,)
