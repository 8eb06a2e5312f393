"""Named values inside functions: `sow` names one, `reap` returns them, `plant` replaces them.

    def model(x):
        hidden = sow(pnp.tanh(x), "hidden")
        return hidden * 2

    reap(model)(x)                        # (2 tanh x, {"hidden": tanh x})
    plant(model, {"hidden": h})(x)        # 2 h
    grad(lambda h: plant(model, {"hidden": h})(x).sum())(h)

A value in a scan, an example or a piece has a leading axis in the dictionary, with a row each.

Invariant: a function that sows computes what it computes without names.
"""

import os

from plait import ext
from plait import numpy as pnp

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

NAMED = ext.Effect("harvest.sow", repeatable=True)  # it stays where its result is not used


@ext.primitive("harvest.sow", traits=(ext.Elementwise,), effect=lambda params: NAMED)
def sow_p(x: ext.Aval, *, tag: str, name: str) -> ext.Aval:
    """`x`, under a name."""
    return x


ext.expand_rules.rule(sow_p)(lambda x, /, **params: x)
ext.eager_rules.rule(sow_p)(lambda args, params: args[0])


def sow(x, name, tag="sown"):
    """Name a value; it is returned as it is."""
    return sow_p.bind(ext.as_value(x), tag=tag, name=name)


class Harvest(ext.observers.Observer):
    """Observes the sown values of a tag."""

    def __init__(self, tag, given=None, of=None):
        self.tag, self.met = tag, set()
        super().__init__(given, of)

    def looks_at(self, prim, params):
        return prim is sow_p and params["tag"] == self.tag


class Reap(Harvest):
    """Collects the values by name."""

    does = "reap"

    def see(self, prim, args, params):
        self.found = self.join(self.found, {params["name"]: args[0]})
        return prim.bind(*args, **params)


class Plant(Harvest):
    """Replaces the values whose names it is given."""

    does = "plant"

    def names(self, program):
        """Return the given names that a program sows."""
        return {e.params["name"] for e in self.observed_equations(program)} & {*self.given}

    def rows(self, given, program, count):
        own = sorted(self.names(program))
        if count is None and own:
            raise ext.PlaitError(
                f"plant: a loop of unknown length sows {own}, and needs a value for each turn",
                fix="use lax.scan, whose length is known",
            )
        return None if count is None else {name: given[name] for name in own}

    def see(self, prim, args, params):
        name = params["name"]
        if name not in self.given:
            return prim.bind(*args, **params)
        self.met.add(name)
        x = pnp.asarray(self.given[name], args[0].dtype)
        if x.shape != args[0].shape:
            raise ext.PlaitError(
                f"plant: {name!r} has the shape {args[0].shape}, got {x.shape}",
                fix="pass a value of that shape; in a scan, with a leading axis for its steps",
            )
        return prim.bind(x, **params)


def reap(f, tag="sown"):
    """A function that returns (results of `f`, {name: value} of what it sows)."""

    def run(*args):
        with ext.opened(Reap(tag, of=f)) as harvest:
            out = f(*args)
        return out, harvest.found

    return run


def plant(f, values, tag="sown"):
    """`f` with these values in place of those that it sows under their names.

    Raises PlaitError for a name that it does not sow.
    """

    def run(*args):
        with ext.opened(Plant(tag, values, of=f)) as harvest:
            out = f(*args)
        for name in sorted({*values} - harvest.met):
            raise ext.PlaitError(
                f"plant: nothing is sown under {name!r}", fix="name values as `sow` does"
            )
        return out

    return run
