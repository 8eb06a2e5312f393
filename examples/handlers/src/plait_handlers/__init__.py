"""Probabilistic programs: `sample(name, dist)` says that a value is drawn, handlers say how.

    def model(xs):
        slope = sample("slope", normal(0.0, 2.0))
        return sample("y", normal(slope * xs, 0.5))

    ys = seed(model, key)(xs)                                  # draw
    p = log_density(condition(model, {"y": ys}), {"slope": 1.0})(xs)

Handlers nest. Each is an interpreter that meets the primitive, and hands on what it does not decide
to the one around it. A site in `lax.scan` has one value for each step, stacked; one in a branch of
`lax.cond` counts if the branch is taken.

Invariant: a site that is decided is `observe`, which all handlers further out see as well; where
there are none, it is its value.
"""

import os
from zlib import crc32

import numpy as np

from plait import ext, lax, random
from plait import numpy as pnp
from plait.ext.ops import control_flow
from plait.ext.trace import open_under

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


ext.expand_rules.rule(observe)(lambda x, *parameters, **params: x)
ext.eager_rules.rule(observe)(lambda args, params: args[0])


@ext.eager_rules.rule(draw)
def _(args, params):
    what = f"nobody decides what is drawn at the site {params['name']!r}"
    raise ext.PlaitError(what, fix="run the function under a handler: seed(f, key)")


ext.lower_rules.rule(draw)(lambda e, xs, ins, outs, **params: ext.eager_rules[draw](xs, params))


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


def sites(programs):
    """Names of the sites in programs, and in those that these hold."""
    eqns = [e for p in programs for e in p.eqns]
    own = {e.params["name"] for e in eqns if e.prim in (draw, observe)}
    return own.union(*[sites(ext.programs_in(e.params)) for e in eqns])


def is_call(prim, params):
    """Whether an operation is its one program, on its operands."""
    w = prim.higher.slots(params)
    bodies = [(tuple(ins), tuple(outs)) for _, ins, outs in w.bodies]
    return bodies == [(w.operands, w.outputs)] and not w.mapped and not prim.higher.binds(params)


class Handler(ext.Interpreter):
    """Starts from a tree `given`, ends with a tree `found`; subclasses say what a site means."""

    def __init__(self, given=None, of=None):
        open_under(self, ext.current())
        self.given, self.of, self.found, self.names = given, of, self.nothing(), set()

    nothing = dict  # what is found where there is no site

    def add(self, found):
        """With what was found in a branch, or in the steps of a loop, stacked."""
        return {**self.found, **found}

    def rows(self, names, length):
        """What the steps of a loop with these sites start from, stacked."""

    def apply(self, prim, args, params):
        if prim.higher is not None and prim.higher.pending(params):
            args, params = prim.higher.settle(params, args)
        here = prim in (draw, observe)
        names = {params["name"]} if here else sites(ext.programs_in(params))
        for name in names & self.names:
            raise ext.PlaitError(f"two sites are named {name!r}", fix="name each differently")
        if names and not here and is_call(prim, params):  # with a twist or without: taken apart
            with ext.use(self):
                return ext.evaluate(*ext.programs_in(params), args)
        self.names |= names
        if not names:
            return self.parent.apply(prim, args, params)
        with ext.use(self.parent):
            if here:
                return self.site(prim, args, params)
            if prim is control_flow.cond:
                forms = [lambda *xs, p=p: self.inside(p, *xs) for p in params["branches"]]
                outs, found = lax.switch(args[0], forms, self.given, *args[1:])
            elif prim is control_flow.scan:
                outs, found = self.scan(names, args, **params)
            else:
                raise ext.PlaitError(f"{prim} holds the sites {sorted(names)}", fix="use lax.scan")
            self.found = self.add(found)
            return outs

    def inside(self, program, given, *args):
        with ext.opened(type(self)(given, self.of)) as inner:
            outs = ext.evaluate(program, args)
        return outs, inner.found

    def scan(self, names, args, body, consts, carry, length, **how):
        def step(state, row):
            outs, found = self.inside(body, row[0], *args[:consts], *state, *row[1])
            return outs[:carry], (outs[carry:], found)

        first, rest = list(args[consts : consts + carry]), list(args[consts + carry :])
        last, (ys, found) = lax.scan(step, first, (self.rows(names, length), rest), length, **how)
        return [*last, *ys], found


class Seed(Handler):
    """Draws what nobody decided further in, from a key."""

    def rows(self, names, length):
        return random.split(self.given, length)

    def site(self, prim, args, params):
        if prim is draw:
            key = random.fold_in(self.given, np.uint32(crc32(params["name"].encode())))
            args = KINDS[params["kind"]][0](key, *args), *args
        return observe.bind(*args, **{"data": False, **params})


class Substitute(Handler):
    """Decides the sites that it has values for; `data` says that these are data."""

    data = False

    def rows(self, names, length):
        return {name: x for name, x in self.given.items() if name in names}

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

    def site(self, prim, args, params):
        x = prim.bind(*args, **params)
        self.found.update({} if params.get("data") else {params["name"]: x})
        return x


class Density(Handler):
    """Finds the logarithm of the density of all sites."""

    nothing = staticmethod(lambda: pnp.zeros((), np.float32))

    def add(self, found):
        return self.found + found.sum()

    def site(self, prim, args, params):
        if prim is draw:
            raise ext.PlaitError(f"site {params['name']!r} has no value", fix="condition on one")
        self.found = self.add(KINDS[params["kind"]][1](*args))
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
