"""Probabilistic programs: `sample(name, dist)` says that a value is drawn, handlers say how.

    def model(xs):
        slope = sample("slope", normal(0.0, 2.0))
        return sample("y", normal(slope * xs, 0.5))

    ys = seed(model, key)(xs)                                  # draw
    p = log_density(condition(model, {"y": ys}), {"slope": 1.0})(xs)

Handlers nest. Each is an interpreter that meets the primitive, and hands on what it does not decide
to the one around it. A site in `lax.scan` or `shard_map` has one value for each step or device,
stacked; one in a branch of `lax.cond` counts if the branch is taken.

Invariant: a site that is decided is `observe`, which all handlers further out see as well; where
there are none, it is its value.
"""

import os
from zlib import crc32

import numpy as np

from plait import ext, random
from plait import numpy as pnp

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

KINDS = {  # kind: (draw, logarithm of the density)
    "normal": (
        lambda key, loc, scale: loc + scale * random.normal(key, loc.shape),
        lambda x, loc, scale: -(((x - loc) / scale) ** 2) / 2 - pnp.log(2 * pnp.pi * scale**2) / 2,
    ),
    "bernoulli": (
        lambda key, p: pnp.where(random.uniform(key, p.shape) < p, pnp.ones_like(p), 0.0),
        lambda x, p: pnp.where(x == 1, pnp.log(p), pnp.log1p(-p)),
    ),
}
SITE = ext.Effect("handlers.site", repeatable=True)  # a site stays, though nobody uses its value


@ext.primitive("handlers.draw", traits=(ext.Elementwise,), effect=lambda params: SITE)
def draw(*parameters: ext.Aval, name: str, kind: str) -> ext.Aval:
    """A value that is still to be drawn: a handler decides it."""
    return parameters[0]


@ext.primitive("handlers.observe", traits=(ext.Elementwise,), effect=lambda params: SITE)
def observe(x: ext.Aval, *parameters: ext.Aval, name: str, kind: str, data: bool) -> ext.Aval:
    """`x`, the value of a site; `data` if it is known, and not to be found out."""
    return x


ext.expand_rules.rule(observe)(lambda x, /, *parameters, **params: x)
ext.eager_rules.rule(observe)(lambda args, params: args[0])


@ext.eager_rules.rule(draw)
def _(args, params):
    what = f"nobody decides what is drawn at the site {params['name']!r}"
    raise ext.PlaitError(what, fix="run the function under a handler: seed(f, key)")


ext.lower_rules.rule(draw)(lambda e, xs, ins, outs, /, **params: ext.eager_rules[draw](xs, params))


def sample(name, dist):
    """The value of a site, float32, in the shape that the parameters of `dist` broadcast to."""
    if not isinstance(dist, tuple) or dist[0] not in KINDS:
        raise ext.PlaitError(f"{dist!r} is no distribution", fix="use normal(0.0, 1.0)")
    values = pnp.broadcast_arrays(*[pnp.asarray(p, np.float32) for p in dist[1:]])
    return draw.bind(*values, name=name, kind=dist[0])


def normal(loc=0.0, scale=1.0):
    """Around `loc`, with the standard deviation `scale`."""
    return "normal", loc, scale


def bernoulli(p):
    """1.0 with the probability `p`, else 0.0."""
    return "bernoulli", p


class Handler(ext.observers.Observer):
    """An observer of the sites; subclasses say what a site means."""

    def __init__(self, given=None, of=None):
        self.names, self.branches = set(), []
        super().__init__(given, of)

    def looks_at(self, prim, params):
        return prim in (draw, observe)

    def sites(self, program):
        """Names of the sites in a program, and in those that it holds."""
        return {e.params["name"] for e in self.observed_equations(program)}

    def enter(self, given, run):
        inner = super().enter(given, run)
        if run.kind == "choice":  # branches may share names, and what follows may not
            inner.names, inner.branches = {*self.names}, []
            self.branches.append(inner.names)
        return inner

    def apply(self, prim, args, params):
        out = super().apply(prim, args, params)
        self.names.update(*self.branches)
        self.branches.clear()
        return out

    def see(self, prim, args, params):
        name = params["name"]
        if name in self.names:
            raise ext.PlaitError(f"two sites are named {name!r}", fix="name each differently")
        self.names.add(name)
        return self.site(prim, args, params)


class Seed(Handler):
    """Draws what nobody decided further in, from a key."""

    does = "seed"

    def rows(self, given, program, count):
        return None if count is None else random.split(given, count)

    def next(self, given):
        return tuple(random.split(given))

    def site(self, prim, args, params):
        if prim is draw:
            key = random.fold_in(self.given, np.uint32(crc32(params["name"].encode())))
            args = KINDS[params["kind"]][0](key, *args), *args
        return observe.bind(*args, **{"data": False, **params})


class Substitute(Handler):
    """Decides the sites that it has values for; `data` says that these are data."""

    does = "substitute"
    data = False

    def rows(self, given, program, count):
        own = {name: given[name] for name in sorted(self.sites(program) & {*given})}
        if count is None and own:
            what = f"a loop of unknown length holds the sites {sorted(own)}"
            raise ext.PlaitError(what, fix="use lax.scan, whose steps have a value each")
        return None if count is None else own

    def site(self, prim, args, params):
        name = params["name"]
        if prim is observe or name not in self.given:
            return prim.bind(*args, **params)
        x = pnp.asarray(self.given[name], np.float32)
        if x.shape != args[0].shape:
            what = f"site {name!r} has the shape {args[0].shape}, and its value {x.shape}"
            raise ext.PlaitError(what, fix="give that shape; in a scan, with one for each step")
        return observe.bind(x, *args, data=self.data, **params)


class Trace(Handler):
    """Finds the values of all sites but data."""

    does = "trace"

    def site(self, prim, args, params):
        x = prim.bind(*args, **params)
        self.found.update({} if params.get("data") else {params["name"]: x})
        return x


class Density(Handler):
    """Finds the logarithm of the density of all sites."""

    does = "log_density"

    def nothing(self):
        return pnp.zeros((), np.float32)

    def join(self, found, more):
        return found + more

    def stacked(self, found, count):
        return found.sum()

    def site(self, prim, args, params):
        if prim is draw:
            raise ext.PlaitError(f"site {params['name']!r} has no value", fix="condition on one")
        self.found = self.join(self.found, KINDS[params["kind"]][1](*args).sum())
        return args[0]  # a density is a number: nobody further out counts the site again


def handled(kind, f, given=None):
    """`f` under a handler: a function that returns (results, what the handler found)."""

    def run(*args):
        with ext.opened(kind(given, f)) as h:
            out = f(*args)
        for name in set(given if isinstance(h, Substitute) else ()) - h.names:
            raise ext.PlaitError(f"no site is named {name!r}", fix=f"name one of {sorted(h.names)}")
        return out, h.found

    return run


def seed(f, key):
    """`f` with what is not decided drawn."""
    return lambda *args: handled(Seed, f, key)(*args)[0]


class Condition(Substitute):
    data = True


def substitute(f, values):
    """`f` with values for sites, by name."""
    return lambda *args: handled(Substitute, f, values)(*args)[0]


replay = substitute  # with the values of a trace


def condition(f, values):
    """`f` with data for sites, by name."""
    return lambda *args: handled(Condition, f, values)(*args)[0]


def trace(f):
    """A function that returns (results of `f`, values of its sites by name, but data)."""
    return handled(Trace, f)


def log_density(f, values):
    """A function that returns the logarithm of the density of `f` at values for all its sites."""
    return lambda *args: handled(Density, substitute(f, values))(*args)[1]
