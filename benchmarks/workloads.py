"""Workloads against a `lib` namespace with JAX's names, so that one file can time both libraries.

Invariant: a workload asks its library for public names only.

A lib namespace must offer (see `measuring.namespace`):
  jit grad value_and_grad vmap jvp vjp linearize make_jaxpr jacfwd jacrev eval_shape checkpoint custom_vjp
  device_put block_until_ready clear_caches
  np (numpy-like)  lax (add neg scan cond while_loop fori_loop conv_general_dilated)  random  tree (map leaves flatten)
  stage_trace(jitted, *args) -> traced ; stage_lower(traced) -> lowered ; stage_compile(lowered) -> callable

A workload is registered with @wl(name, group, ...) on a `setup(lib)` that returns either
  run            : zero-arg callable, timed (auto-repeated)
  (pre, run)     : pre() -> state is NOT timed, run(state) is timed (no inner repetition)
or, in the group "memory", a number of bytes.
`per` divides the time (ops per run call) so that units are per op.
"""

import math
import threading

import numpy as onp

WORKLOADS = {}


class W:
    __slots__ = ("name", "group", "setup", "per", "max_samples", "budget", "note")


def wl(name, group, per=1, max_samples=9, budget=0.8, note=""):
    def deco(f):
        w = W()
        w.name, w.group, w.setup, w.per = name, group, f, per
        w.max_samples, w.budget, w.note = max_samples, budget, note
        assert name not in WORKLOADS, name
        WORKLOADS[name] = w
        return f

    return deco


def fresh(f):
    """New function object: defeats function-identity trace caches."""
    return lambda *a: f(*a)


R = lambda *s, seed=0: onp.random.RandomState(seed).standard_normal(s).astype(onp.float32)


# ------------------------------------------------------------------ eager ops
def _eager(name, build, per=1):
    @wl(name, "eager", per=per)
    def setup(lib, build=build):
        f = build(lib)

        def run():
            return f()

        return run


def _sc(lib):
    return lib.device_put(onp.float32(1.5))


_eager(
    "eager_lax_neg_scalar", lambda l: (lambda a: lambda: l.lax.neg(a))(l.device_put(onp.int32(1)))
)
_eager(
    "eager_lax_add_scalar",
    lambda l: (lambda a: lambda: l.lax.add(a, a))(l.device_put(onp.int32(1))),
)
_eager("eager_operator_add_2x2", lambda l: (lambda a: lambda: a + a)(l.device_put(R(2, 2))))
_eager("eager_operator_add_pyscalar", lambda l: (lambda a: lambda: a + 1.0)(l.device_put(R(2, 2))))
_eager("eager_np_add_2x2", lambda l: (lambda a: lambda: l.np.add(a, a))(l.device_put(R(2, 2))))
_eager("eager_np_sin_2x2", lambda l: (lambda a: lambda: l.np.sin(a))(l.device_put(R(2, 2))))
_eager("eager_matmul_2x2", lambda l: (lambda a: lambda: a @ a)(l.device_put(R(2, 2))))
_eager("eager_matmul_100x100", lambda l: (lambda a: lambda: a @ a)(l.device_put(R(100, 100))))
_eager("eager_sum_axis", lambda l: (lambda a: lambda: l.np.sum(a, axis=0))(l.device_put(R(4, 4))))
_eager("eager_reshape", lambda l: (lambda a: lambda: a.reshape(16))(l.device_put(R(4, 4))))
_eager(
    "eager_where", lambda l: (lambda a: lambda: l.np.where(a > 0, a, 0.0))(l.device_put(R(4, 4)))
)
_eager("eager_index_static", lambda l: (lambda a: lambda: a[3])(l.device_put(R(8, 4))))
_eager("eager_at_set", lambda l: (lambda a: lambda: a.at[3].set(1.0))(l.device_put(R(8, 4))))
_eager(
    "eager_random_normal", lambda l: (lambda k: lambda: l.random.normal(k, (4,)))(l.random.key(0))
)
_eager("eager_random_split", lambda l: (lambda k: lambda: l.random.split(k))(l.random.key(0)))


@wl("eager_chain_100_ops", "eager", per=100, note="us per op; sin/mul/add mix on 4x4")
def _(lib):
    a = lib.device_put(R(4, 4))

    def run():
        x = a
        for _ in range(25):
            x = lib.np.sin(x)
            x = x * a
            x = x + 1.0
            x = lib.np.tanh(x)
        return x

    return run


@wl(
    "eager_repeated_static_indexing_500",
    "eager",
    per=500,
    note="JAX bench_repeated_static_indexing; us per index",
)
def _(lib):
    x = lib.np.arange(500)
    return lambda: lib.block_until_ready([x[i] for i in range(500)])


@wl("eager_repeated_static_slicing_500", "eager", per=500)
def _(lib):
    x = lib.np.arange(1000)
    return lambda: lib.block_until_ready([x[i : i + 2] for i in range(0, 1000, 2)])


def small_f(lib):
    n = lib.np
    return lambda x: n.sum(n.tanh(x) * n.sin(x) + x)


@wl("eager_grad_small", "eager_ad", note="un-jitted grad of 5-op scalar fn")
def _(lib):
    f = small_f(lib)
    x = lib.device_put(R(4))
    g = lib.grad(f)
    return lambda: g(x)


@wl("eager_jvp_small", "eager_ad")
def _(lib):
    f = small_f(lib)
    x = lib.device_put(R(4))
    return lambda: lib.jvp(f, (x,), (x,))


@wl("eager_vmap_small", "eager_ad")
def _(lib):
    f = small_f(lib)
    x = lib.device_put(R(3, 4))
    g = lib.vmap(f)
    return lambda: g(x)


@wl("eager_vmap_grad_small", "eager_ad")
def _(lib):
    f = small_f(lib)
    x = lib.device_put(R(3, 4))
    g = lib.vmap(lib.grad(f))
    return lambda: g(x)


@wl("eager_grad_grad_small", "eager_ad")
def _(lib):
    f = lambda x: lib.np.sin(x) * lib.np.tanh(x)
    x = lib.device_put(onp.float32(1.0))
    g = lib.grad(lib.grad(f))
    return lambda: g(x)


@wl("eager_linearize_small", "eager_ad")
def _(lib):
    f = small_f(lib)
    x = lib.device_put(R(4))

    def run():
        y, lin = lib.linearize(f, x)
        return lin(x)

    return run


@wl("eager_value_and_grad_mlp", "eager_ad", note="4-layer MLP, un-jitted")
def _(lib):
    loss, params, x, y = mlp(lib)
    vg = lib.value_and_grad(loss)
    return lambda: vg(params, x, y)


@wl("remat_eager_retracing_overheads", "eager_ad", note="JAX bench_remat_eager_retracing_overheads")
def _(lib):
    dc = lambda f: lambda x: f(f(x))
    f = lib.np.sin
    for _ in range(6):
        f = dc(f)
    f = dc(lib.checkpoint(f))
    return lambda: lib.vjp(f, 3.0)[0]


# ------------------------------------------------------------------ dispatch
def _disp(name, build, per=1, note=""):
    @wl(name, "dispatch", per=per, note=note)
    def setup(lib, build=build):
        return build(lib)


def _many(n):
    def b(lib):
        args = [lib.device_put(onp.int32(i)) for i in range(n)]
        f = lib.jit(lambda *xs: xs[0] + xs[-1], keep_unused=True)
        lib.block_until_ready(f(*args))
        return lambda: f(*args)

    return b


for _n in (1, 10, 100, 1000):
    _disp(f"jit_dispatch_{_n}_args", _many(_n))


def _many_list(n):
    def b(lib):
        args = [lib.device_put(onp.int32(i)) for i in range(n)]
        f = lib.jit(sum)
        lib.block_until_ready(f(args))
        return lambda: f(args)

    return b


for _n in (10, 100, 1000):
    _disp(f"jit_simple_many_args_dispatch_{_n}", _many_list(_n), note="JAX: jit(sum)(list)")


def _pruned(n):
    def b(lib):
        args = [lib.device_put(onp.int32(i)) for i in range(n)]
        f = lib.jit(lambda *xs: xs[0] + 1)
        lib.block_until_ready(f(*args))
        return lambda: f(*args)

    return b


_disp("jit_simple_pruned_args_dispatch_100", _pruned(100))


def _trivial(lib):
    f = lib.jit(lambda a, b: (b, a))
    a, b = f(1, 2)
    return lambda: f(a, b)


_disp("jit_trivial_dispatch", _trivial)


def _block(lib):
    a = lib.device_put(onp.int32(1))
    f = lib.jit(lambda a, b: a + b)
    f(a, a)
    return lambda: f(a, a).block_until_ready()


_disp("jit_simple_blocking", _block)


def nested_dict(leaf, n=100):
    return {
        f"layer{i}": {"w": leaf(), "b": leaf(), "ln": {"s": leaf(), "o": leaf()}}
        for i in range(n // 4)
    }


def _ptree(lib):
    p = nested_dict(lambda: lib.device_put(R(2)))
    f = lib.jit(lambda t: t["layer0"]["w"] + 1, keep_unused=True)
    f(p)
    return lambda: f(p)


_disp("jit_dispatch_pytree_in_100", _ptree)


def _ptree_io(lib):
    p = nested_dict(lambda: lib.device_put(R(2)))
    f = lib.jit(lambda t: lib.tree.map(lambda x: x + 1, t))
    f(p)
    return lambda: f(p)


_disp("jit_dispatch_pytree_inout_100", _ptree_io)


def _static(lib):
    x = lib.device_put(R(4))
    f = lib.jit(lambda n, mode, x: x * n if mode == "mul" else x, static_argnums=(0, 1))
    f(3, "mul", x)
    return lambda: f(3, "mul", x)


_disp("jit_dispatch_static_args", _static)


def _kw(lib):
    x = lib.device_put(R(4))
    f = lib.jit(lambda x, *, a, b, c: x + a * b - c)
    f(x, a=x, b=x, c=x)
    return lambda: f(x, a=x, b=x, c=x)


_disp("jit_dispatch_kwargs", _kw)


def _npargs(lib):
    x = R(4, 4)
    f = lib.jit(lambda a, b: a + b)
    f(x, x)
    return lambda: f(x, x)


_disp("jit_dispatch_numpy_args", _npargs)


def _pyargs(lib):
    f = lib.jit(lambda a, b: a + b)
    f(1.0, 2.0)
    return lambda: f(1.0, 2.0)


_disp("jit_dispatch_pyscalar_args", _pyargs)


def _donate(lib):
    f = lib.jit(lambda a: a + 1, donate_argnums=(0,))
    st = [lib.device_put(R(4))]
    st[0] = f(st[0])

    def run():
        st[0] = f(st[0])
        return st[0]

    return run


_disp("jit_dispatch_donated", _donate)


def _aot(lib):
    x = lib.device_put(R(4))
    f = lib.stage_compile(lib.stage_lower(lib.stage_trace(lib.jit(lambda a: a + 1), x)))
    f(x)
    return lambda: f(x)


_disp("aot_compiled_call", _aot)


def _aot10(lib):
    xs = [lib.device_put(R(4)) for _ in range(10)]
    j = lib.jit(lambda *xs: xs[0] + xs[-1], keep_unused=True)
    f = lib.stage_compile(lib.stage_lower(lib.stage_trace(j, *xs)))
    f(*xs)
    return lambda: f(*xs)


_disp("aot_compiled_call_10", _aot10)


def _sig2(lib):
    f = lib.jit(lambda a: a + 1)
    xs = [lib.device_put(R(k)) for k in range(1, 9)]
    for x in xs:
        f(x)

    def run():
        for x in xs:
            y = f(x)
        return y

    return run


_disp("jit_dispatch_8_shapes_alternating", _sig2, per=8)


def _thr(nt):
    def b(lib):
        x = lib.device_put(R(4))
        f = lib.jit(lambda a, b: a + b)
        f(x, x)

        def work():
            for _ in range(1000):
                y = f(x, x)
            y.block_until_ready()

        def run():
            ts = [threading.Thread(target=work) for _ in range(nt)]
            for t in ts:
                t.start()
            for t in ts:
                t.join()
            return f(x, x)

        return run

    return b


_disp("threaded_dispatch_1", _thr(1), per=1000)
_disp("threaded_dispatch_2", _thr(2), per=2000, note="us per call, wall/total calls")
_disp("threaded_dispatch_4", _thr(4), per=4000)


@wl("device_put_numpy_1", "dispatch")
def _(lib):
    x = onp.array(1, onp.int32)
    return lambda: lib.device_put(x)


@wl("device_put_numpy_4mb", "dispatch")
def _(lib):
    x = onp.ones((1024, 1024), onp.float32)
    return lambda: lib.device_put(x)


@wl("device_to_numpy", "dispatch")
def _(lib):
    x = lib.device_put(R(4, 4))
    return lambda: (onp.asarray(x), x)[1]


@wl("result_to_numpy", "dispatch", note="of an array that was just computed")
def _(lib):
    x = lib.device_put(R(4, 4))
    f = lib.jit(lambda a: a + 1)
    return lambda: (onp.asarray(f(x)), x)[1]


@wl("device_put_numpy_100", "dispatch")
def _(lib):
    x = [onp.array(1, onp.int32)] * 100
    return lambda: lib.block_until_ready(lib.device_put(x))


@wl("tree_map_1000", "dispatch")
def _(lib):
    t = nested_dict(lambda: 1.0, 1000)
    return lambda: lib.tree.map(lambda x, y: x + y, t, t)


@wl("tree_flatten_1000", "dispatch")
def _(lib):
    t = nested_dict(lambda: 1.0, 1000)
    return lambda: lib.tree.leaves(t)


# ------------------------------------------------------------------ cache behaviour
@wl(
    "jit_add_chain",
    "cache",
    max_samples=9,
    budget=2.0,
    note="JAX jit_add_chain: define+trace+lower+compile+run outer jit with 100 calls of a cached inner jit",
)
def _(lib):
    @lib.jit
    def g(x, y):
        return lib.lax.add(x, y)

    x = lib.random.normal(lib.random.key(0), (2, 2))

    def run():
        @lib.jit
        def f(x):
            for i in range(100):
                x = g(x, x)
            return x

        return f(x).block_until_ready()

    return lib.clear_caches, lambda _: run()  # or an equal program would be found in memory


@wl("jit_add_chain_trace", "cache", note="trace part only of the above")
def _(lib):
    @lib.jit
    def g(x, y):
        return lib.lax.add(x, y)

    x = lib.device_put(R(2, 2))

    def run():
        def f(x):
            for i in range(100):
                x = g(x, x)
            return x

        return lib.stage_trace(lib.jit(f), x)

    return run


@wl("jit_add_chain_lower", "cache")
def _(lib):
    @lib.jit
    def g(x, y):
        return lib.lax.add(x, y)

    x = lib.device_put(R(2, 2))

    def pre():
        def f(x):
            for i in range(100):
                x = g(x, x)
            return x

        return lib.stage_trace(lib.jit(f), x)

    return pre, lib.stage_lower


@wl(
    "lorentz63_cache_hits",
    "cache",
    budget=2.5,
    max_samples=5,
    note="JAX benchmark_lorentz63_cache_hits: make_jaxpr of vmap(remat(100x jit))+grad",
)
def _(lib):
    n = lib.np

    @lib.jit
    def lorentz63(state, dt=0.01, sigma=10, beta=8 / 3, rho=28):
        x, y, z = state
        x_t = sigma * (y - x)
        y_t = (rho - z) * x - y
        z_t = x * y - beta * z
        return n.array([x + x_t * dt, y + y_t * dt, z + z_t * dt])

    def training_step(ic, steps):
        def fs(x):
            for _ in range(steps):
                x = lorentz63(x)
            return x

        def loss(x0):
            return n.square(lib.vmap(lib.checkpoint(fs))(x0)).sum()

        return lib.value_and_grad(loss)(ic)

    x = n.ones((8, 3))
    return lambda: lib.make_jaxpr(lambda x: training_step(x, 100))(x)


@wl(
    "retrace_after_redefinition",
    "cache",
    budget=1.5,
    note="same source redefined, full call (trace+lower+compile+run) of 20-op fn",
)
def _(lib):
    x = lib.device_put(R(4))

    def make():
        def f(x):
            for _ in range(10):
                x = lib.np.sin(x) * x
            return x

        return f

    return lambda: lib.jit(make())(x).block_until_ready()


@wl(
    "rejit_same_function",
    "cache",
    note="jit(f) anew on the SAME f each call: dispatch through new wrapper",
)
def _(lib):
    x = lib.device_put(R(4))

    def f(x):
        return x + 1

    lib.jit(f)(x)
    return lambda: lib.jit(f)(x)


@wl(
    "new_shape_100op",
    "cache",
    budget=2.0,
    note="same jitted fn, a never-seen shape each time: trace+lower+compile of 100-op fn",
)
def _(lib):
    def f(x):
        for _ in range(50):
            x = lib.np.sin(x) * x
        return x

    j = lib.jit(f)
    k = [1]

    def pre():
        k[0] += 1
        return lib.device_put(R(k[0]))

    return pre, lambda x: j(x).block_until_ready()


@wl(
    "slicing_compilation",
    "cache",
    budget=1.5,
    note="JAX bench_slicing_compilation: jit.lower.compile of (x[0],x[1],x[2])",
)
def _(lib):
    x = lib.np.arange(3)
    return lambda: lib.stage_compile(
        lib.stage_lower(lib.stage_trace(lib.jit(lambda x: (x[0], x[1], x[2])), x))
    )


# ------------------------------------------------------------------ models
def mlp(lib, sizes=(8, 16, 16, 16, 4), batch=4):
    n = lib.np
    params = [
        {"w": R(i, o, seed=k) / math.sqrt(i), "b": onp.zeros(o, onp.float32)}
        for k, (i, o) in enumerate(zip(sizes, sizes[1:]))
    ]
    params = lib.device_put(params)
    x, y = lib.device_put(R(batch, sizes[0], seed=7)), lib.device_put(R(batch, sizes[-1], seed=8))

    def loss(params, x, y):
        for p in params[:-1]:
            x = n.tanh(x @ p["w"] + p["b"])
        p = params[-1]
        return n.mean((x @ p["w"] + p["b"] - y) ** 2)

    return loss, params, x, y


def transformer(lib, L=12, d=32, h=4, T=8, B=2, V=64, scanned=False, rolled=False):
    n, lax = lib.np, lib.lax
    s = lambda *sh, seed: R(*sh, seed=seed) * 0.1

    def blk(k):
        return dict(
            ln1=dict(s=onp.ones(d, onp.float32), b=onp.zeros(d, onp.float32)),
            ln2=dict(s=onp.ones(d, onp.float32), b=onp.zeros(d, onp.float32)),
            qkv=s(d, 3 * d, seed=k),
            o=s(d, d, seed=k + 1),
            up=s(d, 4 * d, seed=k + 2),
            bup=onp.zeros(4 * d, onp.float32),
            down=s(4 * d, d, seed=k + 3),
            bdown=onp.zeros(d, onp.float32),
        )

    blocks = [blk(4 * k) for k in range(L)]
    if scanned:
        ks = blocks[0].keys()

        def st(*xs):
            return (
                {k: st(*[x[k] for x in xs]) for k in xs[0]}
                if isinstance(xs[0], dict)
                else onp.stack(xs)
            )

        blocks = st(*blocks)
    params = lib.device_put(
        dict(
            emb=s(V, d, seed=99),
            pos=s(T, d, seed=98),
            blocks=blocks,
            lnf=dict(s=onp.ones(d, onp.float32), b=onp.zeros(d, onp.float32)),
        )
    )
    toks = lib.device_put(onp.random.RandomState(0).randint(0, V, (B, T)).astype(onp.int32))
    tgts = lib.device_put(onp.random.RandomState(1).randint(0, V, (B, T)).astype(onp.int32))
    mask_np = onp.tril(onp.ones((T, T), bool))

    def ln(p, x):
        m = n.mean(x, axis=-1, keepdims=True)
        v = n.mean((x - m) ** 2, axis=-1, keepdims=True)
        return (x - m) / n.sqrt(v + 1e-5) * p["s"] + p["b"]

    def softmax(x):
        m = n.max(x, axis=-1, keepdims=True)
        e = n.exp(x - m)
        return e / n.sum(e, axis=-1, keepdims=True)

    def gelu(x):
        return 0.5 * x * (1 + n.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def block(p, x):
        y = ln(p["ln1"], x)
        q, k, v = n.split(y @ p["qkv"], 3, axis=-1)
        sh = lambda t: t.reshape(B, T, h, d // h).transpose(0, 2, 1, 3)
        q, k, v = sh(q), sh(k), sh(v)
        a = n.matmul(q, n.swapaxes(k, -1, -2)) / math.sqrt(d // h)
        a = softmax(n.where(mask_np, a, -1e9))
        o = n.matmul(a, v).transpose(0, 2, 1, 3).reshape(B, T, d)
        x = x + o @ p["o"]
        y = ln(p["ln2"], x)
        return x + gelu(y @ p["up"] + p["bup"]) @ p["down"] + p["bdown"]

    def loss(params, toks, tgts):
        x = params["emb"][toks] + params["pos"]
        if scanned:
            x, _ = lax.scan(lambda x, p: (block(p, x), None), x, params["blocks"])
        else:
            for p in params["blocks"]:
                x = block(p, x)
        logits = ln(params["lnf"], x) @ params["emb"].T
        m = n.max(logits, axis=-1, keepdims=True)
        logp = logits - m - n.log(n.sum(n.exp(logits - m), axis=-1, keepdims=True))
        oh = (tgts[..., None] == n.arange(V)).astype(n.float32)
        return -n.mean(n.sum(logp * oh, axis=-1))

    if rolled:
        loss = lib.reroll(loss)  # of which jax has none

    def step(params, mom, toks, tgts):
        l, g = lib.value_and_grad(loss)(params, toks, tgts)
        mom = lib.tree.map(lambda m, g: 0.9 * m + g, mom, g)
        params = lib.tree.map(lambda p, m: p - 0.01 * m, params, mom)
        return params, mom, l

    mom = lib.tree.map(lambda p: p * 0, params)
    return loss, step, (params, mom, toks, tgts)


def convnet(lib, C=8, N=2, S=16, blocks=6):
    n, lax = lib.np, lib.lax
    R_ = lambda *s, seed: R(*s, seed=seed) * 0.1
    params = lib.device_put(
        dict(
            stem=R_(3, 3, 3, C, seed=1),
            fc=R_(C, 10, seed=2),
            blocks=[
                dict(
                    c1=R_(3, 3, C, C, seed=i),
                    c2=R_(3, 3, C, C, seed=i + 50),
                    s1=onp.ones(C, onp.float32),
                    b1=onp.zeros(C, onp.float32),
                    s2=onp.ones(C, onp.float32),
                    b2=onp.zeros(C, onp.float32),
                )
                for i in range(blocks)
            ],
        )
    )
    x = lib.device_put(R(N, S, S, 3))
    y = lib.device_put(R(N, 10))
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    relu = lambda x: n.maximum(x, 0)

    def bn(x, s, b):
        m = n.mean(x, axis=(0, 1, 2))
        v = n.mean((x - m) ** 2, axis=(0, 1, 2))
        return (x - m) / n.sqrt(v + 1e-5) * s + b

    def loss(p, x, y):
        x = conv(x, p["stem"])
        for q in p["blocks"]:
            h = relu(bn(conv(x, q["c1"]), q["s1"], q["b1"]))
            x = relu(x + bn(conv(h, q["c2"]), q["s2"], q["b2"]))
        return n.mean((n.mean(x, axis=(1, 2)) @ p["fc"] - y) ** 2)

    return loss, params, x, y


def m_mlp_grad(lib):
    loss, p, x, y = mlp(lib)
    return lib.grad(loss), (p, x, y)


def m_vmap_grad(lib):
    loss, p, x, y = mlp(lib)
    return lib.vmap(lib.grad(loss), in_axes=(None, 0, 0)), (p, x, y)


def m_tf_unrolled(lib):
    _, step, a = transformer(lib)
    return step, a


def m_tf_scanned(lib):
    _, step, a = transformer(lib, scanned=True)
    return step, a


def m_tf_rolled(lib):
    _, step, a = transformer(lib, rolled=True)
    return step, a


def m_tf_fwd(lib):
    loss, _, a = transformer(lib)
    return loss, (a[0], a[2], a[3])


def m_convnet(lib):
    loss, p, x, y = convnet(lib)
    return lib.grad(loss), (p, x, y)


def m_hessian(lib):
    loss, p, x, y = mlp(lib)
    f = lambda w: loss([dict(p[0], w=w)] + list(p[1:]), x, y)
    return lib.jacfwd(lib.jacrev(f)), (p[0]["w"],)


def m_elem2000(lib):
    n = lib.np

    def f(x):
        for _ in range(500):
            x = n.sin(x)
            x = x * 1.5
            x = x + x
            x = n.tanh(x)
        return x

    return f, (lib.device_put(R(4)),)


def m_lax2000(lib):
    add = lib.lax.add
    neg = lib.lax.neg

    def f(x):
        for _ in range(1000):
            x = add(neg(x), x)
        return x

    return f, (lib.device_put(R(4)),)


def m_grad2000(lib):
    f, a = m_elem2000(lib)
    return lib.grad(lambda x: lib.np.sum(f(x))), a


def m_vmap2000(lib):
    f, (x,) = m_elem2000(lib)
    return lib.vmap(f), (lib.device_put(R(3, 4)),)


def m_jvp2000(lib):
    f, a = m_elem2000(lib)
    return (lambda x: lib.jvp(f, (x,), (x,))), a


def m_vmap5(lib):
    n = lib.np
    f = lambda x, y: n.sum(n.tanh(x * y) @ n.sin(x + y).T) + n.max(x)
    for _ in range(5):
        f = lib.vmap(f)
    return f, (lib.device_put(R(2, 2, 2, 2, 2, 3, 3)), lib.device_put(R(2, 2, 2, 2, 2, 3, 3)))


def m_jvp_while(lib):
    n, lax = lib.np, lib.lax

    def f(x):
        def body(c):
            i, x, y = c
            for _ in range(10):
                x = n.sin(x) * y + x
            return i + 1, x, n.tanh(y)

        return lax.while_loop(lambda c: c[0] < 10, body, (0, x, x * 2))[1]

    return (lambda x: lib.jvp(f, (x,), (x,))), (lib.device_put(R(4)),)


def m_grad_scan_cond(lib):
    n, lax = lib.np, lib.lax

    def f(w, xs):
        def body(c, x):
            c = lax.cond(n.sum(c) > 0, lambda c: n.tanh(c @ w), lambda c: n.sin(c @ w) * 2, c)
            return c + x, n.sum(c)

        c, ys = lax.scan(body, n.zeros(4), xs)
        return n.sum(c) + n.sum(ys)

    return lib.grad(f), (lib.device_put(R(4, 4)), lib.device_put(R(6, 4)))


def m_second_order(lib):
    loss, p, x, y = mlp(lib)

    def hvp(p, v):
        g = lambda p: lib.grad(loss)(p, x, y)
        return lib.grad(
            lambda p: lib.tree.reduce(
                lambda a, b: a + b, lib.tree.map(lambda a, b: lib.np.sum(a * b), g(p), v)
            )
        )(p)

    return hvp, (p, p)


def m_many_inner_jit(lib):
    # 60 distinct call sites of 3 jitted helpers under grad: cache friendliness of transforms of inner jits
    n = lib.np
    a = lib.jit(lambda x: n.tanh(x) * 2)
    b = lib.jit(lambda x, y: x * y + x)
    c = lib.jit(lambda x: n.sin(x) - x)

    def f(x):
        for _ in range(20):
            x = c(b(a(x), x))
        return n.sum(x)

    return lib.grad(f), (lib.device_put(R(4)),)


MODELS = dict(
    mlp_grad=m_mlp_grad,
    vmap_grad_mlp=m_vmap_grad,
    tf12_fwd_unrolled=m_tf_fwd,
    tf12_step_unrolled=m_tf_unrolled,
    tf12_step_scanned=m_tf_scanned,
    tf12_step_rolled=m_tf_rolled,
    convnet_grad=m_convnet,
    hessian_mlp=m_hessian,
    elementwise2000=m_elem2000,
    lax2000=m_lax2000,
    grad_elem2000=m_grad2000,
    jvp_elem2000=m_jvp2000,
    vmap_elem2000=m_vmap2000,
    vmap_depth5=m_vmap5,
    jvp_while=m_jvp_while,
    grad_scan_cond=m_grad_scan_cond,
    second_order_hvp=m_second_order,
    grad_inner_jits=m_many_inner_jit,
)
COLD = (
    "mlp_grad",
    "tf12_step_unrolled",
    "convnet_grad",
    "elementwise2000",
)  # also timed with caches cleared
COMPILE = (
    "mlp_grad",
    "vmap_grad_mlp",
    "tf12_step_unrolled",
    "tf12_step_rolled",
    "tf12_step_scanned",
    "convnet_grad",
    "hessian_mlp",
    "elementwise2000",
    "jvp_while",
    "second_order_hvp",
)
SLOW_COMPILE = (
    "tf12_step_unrolled",
    "tf12_step_rolled",
    "tf12_step_scanned",
    "convnet_grad",
    "elementwise2000",
)  # one sample per round, no warm-up
EVALSHAPE = ("mlp_grad", "tf12_fwd_unrolled")

for _m, _b in MODELS.items():

    def _mk(m=_m, b=_b):
        @wl(f"trace_{m}", "trace", max_samples=7, budget=1.2)
        def _(lib):
            f, a = b(lib)
            return (lambda: lib.jit(fresh(f))), (lambda j: lib.stage_trace(j, *a))

        @wl(f"lower_{m}", "lower", max_samples=7, budget=1.2)
        def _(lib):
            f, a = b(lib)
            return (lambda: lib.stage_trace(lib.jit(fresh(f)), *a)), lib.stage_lower

        if m in COLD:

            @wl(
                f"trace_cold_{m}",
                "trace",
                max_samples=5,
                budget=1.5,
                note="clear_caches() before each",
            )
            def _(lib):
                f, a = b(lib)

                def pre():
                    lib.clear_caches()
                    return lib.jit(fresh(f))

                return pre, (lambda j: lib.stage_trace(j, *a))

        if m in COMPILE:
            for name in ("compile", "compile_fast"):

                @wl(f"{name}_{m}", "compile", max_samples=1 if m in SLOW_COMPILE else 3, budget=1.2)
                def _(lib, name=name):
                    f, a = b(lib)

                    def pre():
                        lib.clear_caches()  # an executable of equal code is not compiled again
                        return lib.stage_lower(lib.stage_trace(lib.jit(fresh(f)), *a))

                    return pre, getattr(lib, f"stage_{name}")

        if m in EVALSHAPE:

            @wl(f"eval_shape_{m}", "trace", max_samples=7, budget=1.2)
            def _(lib):
                f, a = b(lib)
                return lambda: lib.eval_shape(fresh(f), *a)

            @wl(f"make_jaxpr_{m}", "trace", max_samples=7, budget=1.2)
            def _(lib):
                f, a = b(lib)
                return lambda: lib.make_jaxpr(fresh(f))(*a)

    _mk()


# ------------------------------------------------------------------ steady-state step cost (small) and compute-heavy
@wl("run_tf12_step_unrolled_small", "run", note="jitted train step, tiny dims, blocking")
def _(lib):
    _, step, a = transformer(lib)
    j = lib.jit(step)
    p, m, t, g = a
    lib.block_until_ready(j(*a))
    return lambda: lib.block_until_ready(j(p, m, t, g))


@wl(
    "run_heavy_matmul_chain",
    "run",
    budget=2.0,
    note="10x 512x512 matmul+tanh: XLA-bound, must be equal",
)
def _(lib):
    x = lib.device_put(R(512, 512) / 23)

    def f(x):
        y = x
        for _ in range(10):
            y = lib.np.tanh(y @ x)
        return y

    j = lib.jit(f)
    j(x).block_until_ready()
    return lambda: j(x).block_until_ready()


@wl(
    "run_heavy_convnet_grad",
    "run",
    budget=2.0,
    note="conv net grad, 16x32x32x16: XLA-bound, must be equal",
)
def _(lib):
    loss, p, x, y = convnet(lib, C=16, N=16, S=32, blocks=4)
    j = lib.jit(lib.grad(loss))
    lib.block_until_ready(j(p, x, y))
    return lambda: lib.block_until_ready(j(p, x, y))


def _while(lib):
    lax, n = lib.lax, lib.np

    def f(x):
        turn = lambda c: (c[0] + 1, n.sin(c[1] @ c[1]))
        return lax.while_loop(lambda c: c[0] < 1000, turn, (0, x))[1]

    return f, (lib.device_put(R(8, 8)),)


def _scan_grad(lib):
    lax, n = lib.lax, lib.np

    def f(w, xs):
        return n.sum(lax.scan(lambda c, x: (n.tanh(c @ w + x), None), n.zeros(32), xs)[0])

    return lib.grad(f), (lib.device_put(R(32, 32) / 8), lib.device_put(R(500, 32)))


def _scan_grad_batched(lib):
    lax, n = lib.lax, lib.np

    def f(w, xs):
        return n.sum(lax.scan(lambda c, x: (n.tanh(c @ w + x), None), n.zeros((8, 32)), xs)[0])

    return lib.grad(f), (lib.device_put(R(32, 32) / 8), lib.device_put(R(500, 8, 32)))


def _scan_cond_grad(lib):
    lax, n = lib.lax, lib.np

    def f(w, xs):
        def body(c, x):
            c = lax.cond(n.sum(c) > 0, lambda c: n.tanh(c @ w), lambda c: n.sin(c @ w) * 2, c)
            return c + x, None

        return n.sum(lax.scan(body, n.zeros((8, 32)), xs)[0])

    return lib.grad(f), (lib.device_put(R(32, 32) / 8), lib.device_put(R(500, 8, 32)))


def _convnet_grad(lib):
    loss, p, x, y = convnet(lib, C=16, N=16, S=32, blocks=4)
    return lib.grad(loss), (p, x, y)


for _n, _b in [
    ("while", _while),
    ("scan_grad", _scan_grad),
    ("scan_grad_batched", _scan_grad_batched),
    ("scan_cond_grad", _scan_cond_grad),
]:

    @wl(f"run_{_n}", "run", budget=2.0)
    def _(lib, build=_b):
        f, a = build(lib)
        j = lib.jit(f)
        lib.block_until_ready(j(*a))
        return lambda: lib.block_until_ready(j(*a))


for _n, _b in [("scan_cond_grad", _scan_cond_grad), ("convnet_grad", _convnet_grad)]:

    @wl(f"bytes_{_n}", "memory")
    def _(lib, build=_b):
        f, a = build(lib)
        compiled = lib.jit(f).lower(*a).compile()
        return float(compiled.memory_analysis().temp_size_in_bytes)


# ------------------------------------------------------------------ batches of sizes that differ
def _lengths(batch, longest, full):
    """Lengths of which a padded batch is filled to an eighth, or wholly."""
    if full:
        return onp.full(batch, longest, onp.int32)
    rng = onp.random.default_rng(0)
    n = onp.exp(rng.normal(onp.log(40), 1.0, batch)).astype(int)
    n = onp.clip(n, 1, longest)
    n[0] = longest
    return n.astype(onp.int32)


def _batch(lib, n, *shape):
    """A pile, where a library has piles, else a padded array."""
    xs = [R(int(m), *shape, seed=i) for i, m in enumerate(n)]
    if lib.Pile is not None:
        return lib.Pile.from_list(xs)
    out = onp.zeros((len(n), int(n.max()), *shape), onp.float32)
    for b, x in enumerate(xs):
        out[b, : len(x)] = x
    return lib.device_put(out)


def _over(lib, f, count, rows):
    """`f(*shared, x, there)` on each element of a batch; it gives rows, or something of one size."""
    if lib.Pile is not None:
        axes = (None,) * count + (lib.pile_axis,)
        out = lib.pile_axis if rows else 0
        return lambda *a: lib.vmap(lambda *v: f(*v, True), in_axes=axes, out_axes=out)(*a[:-1])
    return lib.vmap(f, in_axes=(None,) * count + (0, 0))


def _ragged_sum(lib, x, there):
    return lib.np.where(_column(there, x), x, 0).sum(0)


def _column(there, x):
    return there if there is True else there[:, None]


def _ragged_mlp(lib, w, u, x, there):
    y = lib.np.maximum(x @ w, 0) @ u
    return lib.np.where(_column(there, y), y, 0).sum(0)


def _ragged_rnn(lib, w, x, there):
    n = lib.np

    def step(h, row):
        if there is True:
            return n.tanh(h @ w + row), None
        r, on = row
        return n.where(on, n.tanh(h @ w + r), h), None

    return lib.lax.scan(step, n.zeros(x.shape[1]), x if there is True else (x, there))[0]


def _ragged_attention(lib, w, x, there):
    n = lib.np
    a = (x @ w) @ x.T
    a = a if there is True else n.where(there[None, :], a, -1e30)
    a = n.exp(a - n.max(a, axis=-1, keepdims=True, initial=-1e30))
    a = a / n.sum(a, axis=-1, keepdims=True)
    return n.where(_column(there, x), a @ x, 0).sum(0)


def _ragged(name, f, shapes, batch, longest, width, rows=False):
    def build(lib, full, gradient):
        n = _lengths(batch, longest, full)
        x = _batch(lib, n, width)
        shared = [lib.device_put(R(*s, seed=9) / 16) for s in shapes]
        there = lib.device_put(onp.arange(longest) < n[:, None])
        mapped = _over(lib, lambda *a: f(lib, *a), len(shared), rows)
        g = mapped
        if gradient:
            which = tuple(range(len(shared)))
            g = lib.grad(lambda *a: (mapped(*a) ** 2).sum(), which)
        j = lib.jit(g)
        lib.block_until_ready(j(*shared, x, there))
        return lambda: lib.block_until_ready(j(*shared, x, there))

    for full in (False, True):
        for gradient in (False, True) if shapes and not rows else (False,):
            tail = ("_grad" if gradient else "") + ("_full" if full else "")
            wl(f"ragged_{name}{tail}", "ragged", budget=2.0)(
                lambda lib, full=full, gradient=gradient: build(lib, full, gradient)
            )


def _ragged_softmax(lib, x, there):
    return lib.nn.softmax(x if there is True else lib.np.where(_column(there, x), x, -onp.inf), 0)


def _ragged_cumsum(lib, x, there):
    return lib.np.cumsum(x, 0)


def _ragged_sort(lib, x, there):
    x = x[:, 0]
    return lib.np.sort(x if there is True else lib.np.where(there, x, onp.inf))


def _ragged_fused(lib, w, x, there):
    """Attention of four heads, by the function of that name."""
    q, k = (x @ w).reshape(-1, 4, 16), x.reshape(-1, 4, 16)
    if there is True:
        return lib.nn.dot_product_attention(q, k, k)
    return lib.nn.dot_product_attention(q, k, k, mask=there[None, None])


_ragged("sum", _ragged_sum, [], 256, 512, 64)
_ragged("softmax", _ragged_softmax, [], 256, 512, 64, rows=True)
_ragged("cumsum", _ragged_cumsum, [], 256, 512, 64, rows=True)
_ragged("sort", _ragged_sort, [], 256, 512, 1, rows=True)
_ragged("fused", _ragged_fused, [(64, 64)], 64, 512, 64, rows=True)
_ragged("mlp", _ragged_mlp, [(64, 256), (256, 64)], 256, 512, 64)
_ragged("rnn", _ragged_rnn, [(64, 64)], 256, 512, 64)
_ragged("attention", _ragged_attention, [(64, 64)], 64, 512, 64)


# ragged: 48 sequences, lengths 1..96, single-head self-attention-like reduction
def _ragged_data():
    rs = onp.random.RandomState(0)
    lens = onp.minimum(96, (rs.zipf(1.6, 48))).astype(int)
    lens[0] = 96
    return [R(int(l), 16, seed=i) for i, l in enumerate(lens)]


def _attn1(lib):
    n = lib.np

    def f(x):
        a = x @ x.T
        a = n.exp(a - n.max(a, axis=-1, keepdims=True))
        a = a / n.sum(a, axis=-1, keepdims=True)
        return n.sum(a @ x, axis=0)

    return f


@wl(
    "ragged_padded_jit_run",
    "ragged",
    note="pad 48 ragged seqs to max + mask, jitted, steady state, blocking",
)
def _(lib):
    n = lib.np
    xs = _ragged_data()
    T = max(len(x) for x in xs)
    xp = lib.device_put(onp.stack([onp.pad(x, ((0, T - len(x)), (0, 0))) for x in xs]))
    ls = lib.device_put(onp.array([len(x) for x in xs], onp.int32))

    def f(x, l):
        k = n.arange(T) < l
        a = n.where(k[None, :], x @ x.T, -1e30)
        a = n.exp(a - n.max(a, axis=-1, keepdims=True))
        a = a / n.sum(a, axis=-1, keepdims=True)
        return n.sum(n.where(k[:, None], a @ x, 0.0), axis=0)

    j = lib.jit(lib.vmap(f))
    j(xp, ls).block_until_ready()
    return lambda: j(xp, ls).block_until_ready()


@wl(
    "ragged_perseq_jit_first",
    "ragged",
    max_samples=3,
    budget=3.0,
    note="per-sequence jit incl. a compile per distinct length (first pass)",
)
def _(lib):
    xs = [lib.device_put(x) for x in _ragged_data()]
    f = _attn1(lib)
    return (lambda: lib.jit(fresh(f))), (lambda j: lib.block_until_ready([j(x) for x in xs]))


@wl("ragged_perseq_jit_steady", "ragged", note="per-sequence jit, warm")
def _(lib):
    xs = [lib.device_put(x) for x in _ragged_data()]
    j = lib.jit(_attn1(lib))
    [j(x) for x in xs]
    return lambda: lib.block_until_ready([j(x) for x in xs])
