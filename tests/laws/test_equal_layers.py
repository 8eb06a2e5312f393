"""Equal layers take their compiler's time once: it compiles a loop again only if it differs.

Invariant: how many different loops a program has, and how many arrays each of them reads, do not
grow with the number of equal layers; a value that is written for that keeps its bits.
"""

import re

import numpy as np
import pytest

import plait
from plait import numpy as pn

D, HEADS = 64, 4


def normed(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / pn.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def normed_as_written(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / pn.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def by_hand(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / 4
    seen = pn.tril(pn.ones(scores.shape[-2:], bool))
    return plait.nn.softmax(pn.where(seen, scores, -1e9)) @ v


def whole(q, k, v):
    return plait.nn.dot_product_attention(
        *(x.transpose(0, 2, 1, 3) for x in (q, k, v)), is_causal=True
    ).transpose(0, 2, 1, 3)


def transformer(attend, normed):
    def block(x, p):
        b, t, _ = x.shape
        q, k, v = (x @ p["qkv"]).reshape(b, t, 3, HEADS, D // HEADS).transpose(2, 0, 3, 1, 4)
        h = attend(q, k, v).transpose(0, 2, 1, 3).reshape(b, t, D)
        x = x + h @ p["out"]
        return x + plait.nn.gelu(normed(x) @ p["up"]) @ p["down"]

    return block


def recurrent(x, p):
    return pn.tanh(x @ p["out"]) * plait.nn.sigmoid(x @ p["out"]) + x / (1 + abs(x))


def residual(x, p):
    return x + plait.nn.silu(normed(x) @ p["up"]) @ p["down"]


def rectified(x, p):
    return plait.nn.relu(x + normed(x @ p["out"]) + x.mean(0))


def gated(x, p):
    return x * plait.nn.sigmoid(normed(x) @ p["out"])


LAYERS = {
    "attention by hand": transformer(by_hand, normed_as_written),
    "attention": transformer(whole, normed),
    "recurrent": recurrent,
    "residual": residual,
    "rectified": rectified,
    "gated": gated,
}
SIZES = {"rows": (8, 32, D), "few rows": (2, 8, D)}


def weights(depth):
    rng = np.random.default_rng(0)
    shapes = {"qkv": (D, 3 * D), "out": (D, D), "up": (D, 4 * D), "down": (4 * D, D)}
    return [{k: rng.normal(0, 0.1, s).astype(np.float32) for k, s in shapes.items()}
            for _ in range(depth)]  # fmt: skip


def step_of(layer, depth, size):
    """Return a step of training of so many layers on inputs of a size, and its arguments."""

    def loss(ps, x):
        for p in ps:
            x = layer(x, p)
        return (x**2).mean()

    def step(ps, x):
        value, slopes = plait.value_and_grad(loss)(ps, x)
        return value, plait.tree.map(lambda p, d: p - 0.01 * d, ps, slopes)

    return step, weights(depth), pn.ones(size, "float32")


def compiled(f, *args):
    with plait.config(cache_dir=None):
        return plait.jit(f, tier="full").lower(*args).compile().as_text()


def loops(f, *args):
    """Return the different loops of a compiled function, and the most arrays that one reads."""
    bodies = re.findall(r"^%?(fused_computation\S*) \((.*?)^}", compiled(f, *args), re.M | re.S)
    read = [body.partition(") -> ")[0].count(": ") for _, body in bodies]
    return {_nameless(body) for _, body in bodies}, max(read)


def _nameless(body):
    """Return the text of a loop with its values numbered in the order of their places."""
    names: dict[str, str] = {}
    body = re.sub(r", metadata=\{[^}]*\}", "", body)
    return re.sub(
        r"%?[a-z_][\w-]*\.\d+\b", lambda m: names.setdefault(m[0], f"v{len(names)}"), body
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
@pytest.mark.parametrize("name", LAYERS)
def test_equal_layers_have_equal_loops(name, jitted, size):
    layer = plait.jit(LAYERS[name]) if jitted else LAYERS[name]
    few, most = loops(*step_of(layer, 6, SIZES[size]))
    many, most_of_many = loops(*step_of(layer, 10, SIZES[size]))
    assert len(many) <= len(few) + 1
    assert most_of_many <= most


ROWS = {
    "softmax": plait.nn.softmax,
    "masked": lambda x: plait.nn.softmax(pn.where(pn.tril(pn.ones(x.shape, bool)), x / 8, -1e9)),
    "log_softmax": lambda x: plait.nn.log_softmax(x)[:, 0],
    "gradient": plait.grad(lambda x: (plait.nn.softmax(x) ** 2).sum()),
    "normed": normed,
}


@pytest.mark.parametrize("name", ROWS)
def test_functions_with_several_calls_have_the_loops_of_their_code(name):
    f, rows = ROWS[name], [np.ones((64, 128), np.float32)] * 2
    shared = plait.jit(f)

    def steps(f):
        text = compiled(lambda x, y: (f(x), f(y)), *rows)
        return text[text.index("ENTRY") :].count(" fusion(")

    assert steps(f) == steps(shared)


READERS = {
    "sum": lambda x: x.sum(0),
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "sorted": lambda x: pn.sort(x, axis=0),
    "product of rows": lambda x: x.reshape(-1, 4) @ pn.ones((4, 4), x.dtype),
    "function": lambda x: pn.tanh(x).sum(0),
    "product": lambda x: x @ pn.ones((8, 8), x.dtype),
    "part": lambda x: x[:, 2:4],
}


def chain(reader, link):
    """Return a function that reads each of the values of a chain."""

    def f(x, ws):
        found = []
        for w in ws:
            x = link(x, w)
            found.append(reader(x))
        return x, found

    return f


LINKS = {
    "product": lambda x, w: x * w - w,
    "function": lambda x, w: x + pn.tanh(x) * w,
    "rectified": lambda x, w: plait.nn.relu(x + w),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", READERS)
def test_a_loop_reads_few_of_the_arrays_of_a_chain(name, link, jitted):
    f = chain(READERS[name], plait.jit(LINKS[link]) if jitted else LINKS[link])
    a = pn.ones((8, 8), "float32")
    few, many = (loops(f, a, [a + i for i in range(n)])[1] for n in (8, 16))
    assert many == few <= 5


@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
def test_a_loop_in_a_link_reads_few_of_the_arrays_of_a_chain(jitted):
    link = lambda x, w: x + x.mean(-1, keepdims=True) * w  # noqa: E731
    f = chain(lambda x: 0, plait.jit(link) if jitted else link)
    a = pn.ones((8, 8), "float32")
    few, many = (loops(f, a, [a + i for i in range(n)])[1] for n in (8, 16))
    assert many == few <= 5


def test_a_chain_in_a_division_is_a_chain():
    mesh, spec = plait.make_mesh((len(plait.devices()),), ("d",)), plait.PartitionSpec("d")
    f = chain(READERS["part"], LINKS["product"])
    divided = plait.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    a = pn.ones((8, 8), "float32")
    few, many = (loops(divided, a, [a + i for i in range(n)])[1] for n in (8, 16))
    assert many == few <= 5


@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8", "complex64"]
)
def test_the_values_of_a_chain_are_those_of_numpy(dtype, jitted):
    steps = [lambda x, w: x + w, lambda x, w: x * w]
    if dtype in ("int32", "uint8"):
        at, x = pn.iinfo(dtype), np.arange(11)
        x = np.array([at.max, at.min, 0, 1, 2, 3, 5, 7, 11, 13, 17], dtype)
        tiny = 0
    else:
        at = pn.finfo(dtype)
        tiny = at.tiny
        real = [np.nan, np.inf, -np.inf, 0.0, -0.0, at.max, at.min, tiny, -tiny, 1, -3]
        x = np.array(real, pn.dtype(dtype))
    if dtype == "complex64":
        x, steps = x.real + 1j * np.arange(11, dtype="float32"), steps[:1]
    x = np.stack([np.roll(x, i) for i in range(len(x))])
    ws = [np.roll(x, 3 * i, 1) for i in range(8)]
    for step in steps:
        f = chain(lambda x: x[::-1], plait.jit(step) if jitted else step)
        with plait.config(cache_dir=None, x64=dtype == "float64"):
            found = [np.asarray(y) for y in plait.jit(f)(x, ws)[1]]
        with np.errstate(all="ignore"):
            expected = chain(lambda x: x[::-1], step)(x, ws)[1]
        for y, z in zip(found, expected, strict=True):
            for a, b in [(y.real, z.real), (y.imag, z.imag)] if dtype == "complex64" else [(y, z)]:
                b = np.where(abs(b) < tiny, np.copysign(0, b), b) if tiny else b
                equal = (a == b) | (a != a) & (b != b)
                if tiny:
                    equal &= (np.signbit(a) == np.signbit(b)) | (b != b)
                assert equal.all()


@pytest.mark.parametrize("jitted", [False, True], ids=["", "in functions"])
def test_a_chain_in_one_loop_stays_in_it(jitted):
    link = lambda x, w: x + w * pn.sin(x)  # noqa: E731
    f = chain(lambda x: 0, plait.jit(link) if jitted else link)
    a = pn.ones((8, 8), "float32")
    args = a, [a + i for i in range(12)]
    text = compiled(lambda x, ws: plait.jvp(lambda x: f(x, ws)[0], (x,), (x,)), *args)
    assert text[text.index("ENTRY") :].count(" fusion(") <= 2


@pytest.mark.parametrize(
    "link",
    [lambda x, w: pn.sqrt(x) + w, lambda x, w: 3.5 * x * (1 - x)],
    ids=["which the compiler writes", "of one array"],
)
def test_some_chains_are_left_alone(link):
    f = chain(READERS["reversed"], link)
    a = pn.ones((8, 8), "float32")
    assert " divide(" not in compiled(f, a, [a + i for i in range(12)])


def test_the_code_of_a_chain_grows_with_its_links():
    def lines(links):
        a = pn.ones((8, 8), "float32")
        f = chain(lambda x: x.sum(), lambda x, w: w * x * (1 - x) + a)
        return compiled(f, a, [a] * links).count("\n")

    assert lines(32) < 2.5 * lines(16)
