"""A hundred programs over eight devices, and what the compiler makes of each.

`python divided_programs.py` prints it for jax, `python divided_programs.py plait` for Plait, as
JSON: of each program how many of which collective its compiled form has, and how many bytes of
arguments, results and temporaries each device needs.  Values are added up, for a comparison.

Invariant: a program is written once, with names that both libraries have.
"""

import collections
import functools
import json
import re
import sys

import numpy as np

if sys.argv[1:] == ["plait"]:
    import plait as jax
    import plait.numpy as jnp
    from plait import lax
    from plait.sharding import AxisType, Mesh, NamedSharding, reshard
    from plait.sharding import PartitionSpec as P

    jax.config.cpu_devices = 8
else:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import AxisType, Mesh, NamedSharding, reshard
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_num_cpu_devices", 8)

DEVICES = np.array(jax.devices()[:8])
LINE = Mesh(DEVICES, ("d",))
GRID = Mesh(DEVICES.reshape(2, 4), ("x", "y"))
CUBE = Mesh(DEVICES.reshape(2, 2, 2), ("a", "b", "c"))
EXPLICIT = Mesh(DEVICES.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "collective-permute",
    "reduce-scatter",
    "collective-broadcast",
    "ragged-all-to-all",
)
PROGRAMS = {}
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


X, Y, W = normal(64, 32), normal(64, 32), normal(32, 48)
V, B, H = normal(48, 32), normal(48), normal(16, 8, 32)
IDS = RNG.integers(0, 64, (16, 8)).astype(np.int32)
S, ROWS, COLS, TILES = P(), P("x"), P(None, "y"), P("x", "y")


def on(mesh, spec):
    return NamedSharding(mesh, spec)


def is_spec(s):
    return isinstance(s, P)


def divided(name, f, specs, *args, out=None, mesh=GRID, donate=()):
    """jit, with arguments (and results) where they are said to be."""
    place = lambda spec: on(mesh, spec)  # noqa: E731
    ins = jax.tree.map(place, specs, is_leaf=is_spec)
    outs = {} if out is None else {"out_shardings": jax.tree.map(place, out, is_leaf=is_spec)}
    assert name not in PROGRAMS, name
    PROGRAMS[name] = (jax.jit(f, in_shardings=ins, donate_argnums=donate, **outs), args)


def pieces(name, f, ins, outs, *args, mesh=LINE, then=None, **how):
    """jit of shard_map, or of what `then` makes of it; arguments lie as it asks for them."""
    g = jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **how)
    divided(name, then(g) if then else g, ins, *args, mesh=mesh)


def squares(f):
    """The gradient of the sum of squares of all results, by the first argument."""

    def loss(*args):
        return sum((r * r).sum() for r in jax.tree.leaves(f(*args)))

    return jax.grad(loss)


def constrained(x, spec, mesh=GRID):
    return lax.with_sharding_constraint(x, on(mesh, spec))


# ---- jit, by placement -------------------------------------------------------------------------


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x):
    m = x.mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)


def attention(x):
    p = softmax(jnp.einsum("bqd,bkd->bqk", x, x) / 6.0)
    return jnp.einsum("bqk,bkd->bqd", p, x)


def by_placement():
    divided("elements", lambda x, y: jnp.sin(x) * y + x, (TILES, TILES), X, Y)
    divided("elements that lie elsewhere", lambda x, y: x * y, (ROWS, COLS), X, Y)
    divided("sum", jnp.sum, (TILES,), X)
    divided("sum of rows", lambda x: x.sum(1), (TILES,), X)
    divided("mean and variance", lambda x: (x.mean(0), x.var(0)), (ROWS,), X)
    divided("maximum where it is", lambda x: jnp.argmax(x, 1), (TILES,), X)
    divided("contraction", jnp.matmul, (COLS, P("y")), X, W)
    divided("contraction, left as pieces", jnp.matmul, (COLS, P("y")), X, W, out=P(None, "y"))
    divided("outer product", jnp.matmul, (ROWS, COLS), X, W)
    divided("matrix of tiles", jnp.matmul, (TILES, P("y", "x")), X, W)
    divided("softmax", softmax, (TILES,), X)
    divided("layer norm", layer_norm, (TILES,), X)
    divided("transposed", lambda x: x.T + 1, (TILES,), X, out=P("x", "y"))
    divided("reshaped", lambda x: x.reshape(16, 4, 32) * 2, (ROWS,), X)
    divided("joined", lambda x, y: jnp.concatenate([x, y]), (ROWS, ROWS), X, Y)
    divided("sliced", lambda x: x[8:40, ::2], (TILES,), X)
    divided("rolled", lambda x: jnp.roll(x, 3, 0), (ROWS,), X)
    divided("padded", lambda x: jnp.pad(x, ((1, 1), (0, 0))), (ROWS,), X)
    divided("running sum", lambda x: jnp.cumsum(x, 0), (ROWS,), X)
    divided("sorted", lambda x: jnp.sort(x, 1), (TILES,), X)
    divided("taken", lambda t, i: t[i], (COLS, ROWS), X, IDS)
    divided("added at", lambda t, i, h: t.at[i].add(h), (S, ROWS, ROWS), X, IDS, H)
    divided("attention", attention, (ROWS,), H)
    divided("attention over parts of sequences", attention, (P("x", "y"),), H)
    divided("mapped", jax.vmap(lambda x, y: x @ y), (TILES, TILES), X, Y)
    divided("scanned", lambda x, w: lax.scan(lambda c, r: (jnp.tanh(c * r), c.sum()), w, x),
            (COLS, P("y")), X, X[0])  # fmt: skip
    divided("looped", lambda x, w: lax.fori_loop(0, 4, lambda i, c: jnp.tanh(c @ w), x),
            (ROWS, COLS), X, normal(32, 32))  # fmt: skip
    divided("branches", lambda p, x: lax.cond(p, jnp.sin, lambda v: v - v.sum(0), x),
            (S, TILES), np.bool_(True), X)  # fmt: skip
    divided("donated", lambda x, y: x - 0.1 * y, (TILES, TILES), X, Y, out=TILES, donate=(0,))


# ---- resharding --------------------------------------------------------------------------------


def resharding():
    divided("whole", lambda x: x * 1, (TILES,), X, out=S)
    divided("rows to columns", lambda x: x * 1, (P("x"),), X, out=P(None, "x"))
    divided("all to all", lambda x: x * 1, (P("d"),), X, out=P(None, "d"), mesh=LINE)
    divided("axes exchanged", lambda x: x * 1, (P("x", "y"),), X, out=P("y", "x"))
    divided("finer", lambda x: x * 1, (P("x"),), X, out=P(("x", "y")))
    divided("coarser", lambda x: x * 1, (P(("x", "y")),), X, out=P("x"))
    divided("three axes", lambda x: x * 1, (P("a", ("b", "c")),), X, out=P(("c", "b"), "a"),
            mesh=CUBE)  # fmt: skip
    divided("constraint between", lambda x, y: constrained(jnp.sin(x), COLS) @ y.T, (ROWS, S), X, Y)
    divided("constraint on a cotangent", squares(lambda x, y: constrained(jnp.sin(x), COLS) * y),
            (ROWS, S), X, Y)  # fmt: skip
    divided("sum to pieces", lambda x, w: constrained(x @ w, P(("x", "y"))), (COLS, P("y")), X, W)


# ---- gradients, by placement -------------------------------------------------------------------


def perceptron(w, v, x):
    return jnp.tanh(x @ w) @ v


def deep(wv, x, layer):
    for w, v in wv:
        x = layer(w, v, x)
    return x


def stacked(wv, x, layer):
    return lax.scan(lambda c, p: (layer(*p, c), None), x, wv)[0]


WAYS = {
    "data": (S, S, P(("x", "y"))),
    "tensors": (COLS, P("y"), S),
    "data and tensors": (COLS, P("y"), ROWS),
    "parts of all": (P("x"), P("x"), P("x")),
}


def behind(spec):
    return P(None, *spec)


def steps():
    layers = [(normal(32, 48) / 6, normal(48, 32) / 6) for _ in range(3)]
    stack = tuple(np.stack(w) for w in zip(*layers))
    again = jax.checkpoint(perceptron)
    sines = jax.checkpoint(lambda w, v, x: jnp.sin(perceptron(w, v, x)))
    for way, (w, v, x) in WAYS.items():
        each, whole = [(w, v)] * 3, (behind(w), behind(v))
        f = squares(functools.partial(deep, layer=perceptron))
        divided(f"step, {way}", f, (each, x), layers, X)
        f = squares(functools.partial(deep, layer=again))
        divided(f"checkpointed step, {way}", f, (each, x), layers, X)
        f = squares(functools.partial(stacked, layer=perceptron))
        divided(f"scanned step, {way}", f, (whole, x), stack, X)
        f = squares(functools.partial(stacked, layer=again))
        divided(f"scanned and checkpointed step, {way}", f, (whole, x), stack, X)
    for way in ("tensors", "data and tensors"):
        w, v, x = WAYS[way]
        f = squares(functools.partial(deep, layer=sines))
        divided(f"checkpointed sines, {way}", f, ([(w, v)] * 3, x), layers, X)

    def descent(wv, x):
        value, slope = jax.value_and_grad(lambda p: (deep(p, x, perceptron) ** 2).mean())(wv)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, wv, slope)

    for way in ("data", "data and tensors", "parts of all"):
        w, v, x = WAYS[way]
        each = [(w, v)] * 3
        divided(f"descent, {way}", descent, (each, x), layers, X, out=(S, each), donate=(0,))


def gradients():
    divided("gradient of softmax", squares(softmax), (TILES,), X)
    divided("gradient of a norm", squares(lambda x, y: layer_norm(x) * y), (TILES, S), X, Y)
    divided("gradient of attention", squares(attention), (ROWS,), H)
    divided("gradient of attention over parts", squares(attention), (P("x", "y"),), H)
    divided("gradient of taking", squares(lambda t, i: t[i]), (COLS, ROWS), X, IDS)
    divided("gradient of a running sum", squares(lambda x: jnp.cumsum(x, 0)), (ROWS,), X)
    divided("gradient of a transpose", squares(lambda x: jnp.sin(x.T)), (TILES,), X)
    divided("gradient of joining", squares(lambda x: jnp.concatenate([x, x * x])), (ROWS,), X)
    divided("gradients of examples", jax.vmap(squares(lambda w, r: jnp.tanh(r @ w)), (None, 0)),
            (S, P("x")), W, X)  # fmt: skip
    divided("curvature", lambda w, x: jax.jvp(squares(lambda p: jnp.tanh(x @ p)), (w,), (w,))[1],
            (COLS, ROWS), W, X)  # fmt: skip
    divided("forward derivative", lambda w, x: jax.jvp(lambda p: softmax(x @ p), (w,), (w,)),
            (COLS, ROWS), W, X)  # fmt: skip
    divided("gradient through a loop",
            squares(lambda w, x: lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ w), x)),
            (COLS, ROWS), normal(32, 32), X)  # fmt: skip


# ---- pieces ------------------------------------------------------------------------------------

D = P("d")
TURN = [(i, (i + 1) % 8) for i in range(8)]
OF_PIECES = {
    "psum": (lambda x: lax.psum(x, "d"), D, S),
    "pmean": (lambda x: lax.pmean(jnp.sin(x), "d"), D, S),
    "pmax": (lambda x: lax.pmax(x, "d"), D, S),
    "gathered": (lambda x: lax.all_gather(x, "d", tiled=True) * 2, D, D),
    "scattered sum": (lambda x: lax.psum_scatter(x, "d", tiled=True), P(None, "d"), D),
    "sent round": (lambda x: lax.ppermute(x, "d", TURN), D, D),
    "exchanged": (lambda x: lax.all_to_all(x, "d", 1, 0, tiled=True), D, P(None, "d")),
    "numbered": (lambda x: x * lax.axis_index("d"), D, D),
    "sum and mean": (lambda x: x - lax.pmean(x.mean(0), "d"), D, D),
    "a tree of sums": (lambda x: lax.psum((x, jnp.sin(x), x.sum()), "d"), D, (S, S, S)),
    "a sum twice": (lambda x: lax.psum(lax.psum(x, "d") * x, "d"), D, S),
}
OVER_AXES = {
    "psum over both": (lambda x: lax.psum(x, ("x", "y")), TILES, S),
    "psum over one": (lambda x: lax.psum(x, "y"), TILES, P("x")),
    "psum over one, then the other": (lambda x: lax.psum(lax.psum(x, "y") ** 2, "x"), TILES, S),
    "gathered over both": (lambda x: lax.all_gather(x, ("x", "y"), tiled=True) * 2,
                           P(("x", "y")), P(("x", "y"))),
    "scattered over both": (lambda x: lax.psum_scatter(x, ("x", "y"), tiled=True),
                            P(None, ("x", "y")), P(("x", "y"))),
    "product of tiles": (lambda x: lax.psum(x @ jnp.ones((8, 4)), "y"), TILES, P("x")),
}  # fmt: skip


def of_pieces():
    for name, (f, ins, outs) in OF_PIECES.items():
        pieces(name, f, (ins,), outs, X)
        if name != "pmax":
            pieces(f"gradient: {name}", f, (ins,), outs, X, then=squares)
    for name, (f, ins, outs) in OVER_AXES.items():
        pieces(name, f, (ins,), outs, X, mesh=GRID)
        pieces(f"gradient: {name}", f, (ins,), outs, X, mesh=GRID, then=squares)


def steps_on_pieces():
    w, v = normal(32, 48) / 6, normal(48, 32) / 6

    def data(w, v, x):
        return jax.grad(lambda p: lax.pmean((perceptron(p[0], p[1], x) ** 2).mean(), "d"))((w, v))

    pieces("pieces: data", data, (S, S, D), (S, S), w, v, X)

    def tensors(w, v, x):
        return lax.psum(jnp.tanh(x @ w) @ v, "d")

    spec = (P(None, "d"), D, S)
    pieces("pieces: tensors", tensors, spec, S, w, v, X, then=squares)
    again = jax.checkpoint(tensors)
    pieces("pieces: tensors, checkpointed", again, spec, S, w, v, X, then=squares)

    def parts(w, v, x):
        w, v = (lax.all_gather(p, "d", tiled=True) for p in (w, v))
        return perceptron(w, v, x)

    pieces("pieces: parts of all", parts, (D, D, D), D, w, v, X, then=squares)
    again = jax.checkpoint(parts)
    pieces("pieces: parts of all, checkpointed", again, (D, D, D), D, w, v, X, then=squares)

    def scanned(w, x):
        return lax.scan(lambda c, p: (lax.psum(jnp.tanh(c @ p) / 8, "d") + c * 0, None), x, w)[0]

    three = normal(3, 32, 32)
    pieces("pieces: scanned", scanned, (P(None, None, None), S), S, three, X,
           check_vma=False)  # fmt: skip

    def ring(x, w):
        def turn(c, i):
            x, total = c
            return (lax.ppermute(x, "d", TURN), total + jnp.sin(x @ w)), None

        start = lax.pcast(jnp.zeros((8, 48)), "d", to="varying")
        return lax.scan(turn, (x, start), jnp.arange(8))[0][1]

    pieces("pieces: ring", ring, (D, S), D, X, w)
    pieces("gradient of pieces: ring", ring, (D, S), D, X, w, then=squares)


def explicit():
    def lies(name, f, specs, *args):
        args = [jax.device_put(a, on(EXPLICIT, s)) for a, s in zip(args, specs, strict=True)]
        PROGRAMS[name] = (jax.jit(f), args)

    product = lambda x, w: jnp.einsum("ij,jk->ik", x, w, out_sharding=on(EXPLICIT, P("x")))  # noqa: E731
    lies("explicit: gradient", squares(lambda w, x: jnp.tanh(x @ w)), (P(None, "y"), P("x")), W, X)
    lies("explicit: product", jnp.matmul, (P("x"), P(None, "y")), X, W)
    lies("explicit: contraction", product, (TILES, P("y")), X, W)
    lies(
        "explicit: resharded",
        lambda x: reshard(jnp.sin(x), on(EXPLICIT, P(None, "x"))),
        (TILES,),
        X,
    )


by_placement(), resharding(), steps(), gradients(), of_pieces(), steps_on_pieces(), explicit()


def measured(f, args):
    """What the compiler makes of a program, and what becomes of its numbers."""
    compiled = f.lower(*args).compile()
    names = re.findall(r"\s([a-z-]+?)(?:-start)?\(", compiled.as_text())
    m = compiled.memory_analysis()
    sizes = m.argument_size_in_bytes, m.output_size_in_bytes, m.temp_size_in_bytes
    found = collections.Counter(n for n in names if n in COLLECTIVES)
    leaves = [np.asarray(a, np.float64) for a in jax.tree.leaves(compiled(*args))]
    return found, sizes, [float(np.abs(a).sum()) for a in leaves]


if __name__ == "__main__":
    print(json.dumps({name: measured(*program) for name, program in PROGRAMS.items()}))
