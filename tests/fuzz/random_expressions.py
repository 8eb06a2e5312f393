"""Random small expressions at extreme values: compiled as one program, and operation by operation.

An expression is one to five operations on a few arrays and numbers of one dtype, with whatever
comparisons, conversions, sums and products of matrices lead to.  Its arrays hold what arithmetic is
bad at: infinities, nan, zeros of both signs, the least and the greatest numbers, and those about
the roots of these.  The compiled program must return what its operations return one after the
other: the same bits, but that one nan is as good as another.  Of every second expression, some
operations are a jitted function; every fourth one calls it twice.  A sum whose value depends on the
order of its terms is the last operation of its expression, and must lie between bounds.

That holds where the processor multiplies and adds in two roundings, so the expressions are run by
processes for which the compiler keeps to such instructions (`ENVIRONMENT`).

Run as a script, `python -m tests.fuzz.random_expressions`, it goes on for `--minutes` or
`--count` expressions, from a seed that it prints, and says what differs.

Invariant: a batch of expressions follows from its seed alone.
"""

import gc
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax

from .array_operations import (
    ARRAY_OPERATIONS,
    BEGINNINGS,
    SIZE,
    VECTOR,
    Shape,
    is_exact,
    outside,
    terms_of,
)
from .seeds import begin, seeds

ENVIRONMENT = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX"}
BATCH = 100
FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")
SIGNED = ("int32", "int8", "int64", "int16")
UNSIGNED = ("uint32", "uint8", "uint64", "uint16")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATS, *SIGNED, *UNSIGNED, *COMPLEX)
WEIGHTS = [6, 5, 4, 3, 1, 1, 5, 3, 2, 1, 2, 2, 1, 1, 2, 1]
NUMBERS = ("float32", "float16", "bfloat16", "float64", "int32", "int8", "int64", "uint8", "uint32")

# ---- what there is ---------------------------------------------------------------------------

_FLOAT_UNARY = """neg abs sign floor ceil exp exp2 expm1 log log1p sin cos tan asin acos atan sinh
cosh tanh asinh acosh atanh sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma digamma square
reciprocal round stop_gradient"""
_OFTEN = "neg abs sqrt rsqrt exp log square reciprocal tanh logistic"
_FLOAT_BINARY = "add sub mul div rem pow max min atan2 nextafter"
_COMPARISONS = "eq ne lt le gt ge"
_WHOLE_UNARY = "neg abs sign square bitwise_not population_count clz stop_gradient"
_WHOLE_BINARY = """add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left
shift_right_arithmetic shift_right_logical"""
_COMPLEX_UNARY = "neg conj exp log sqrt sin tanh sign square reciprocal rsqrt"
_COMPLEX_BINARY = "add sub mul div"
_MOVES = {
    "rev": lambda x: lax.rev(x, (0,)),
    "halves": lambda x: pnp.concatenate([x[SIZE // 2 :], x[: SIZE // 2]]),
    "square_of_rows": lambda x: x.reshape(4, SIZE // 4).T.reshape(SIZE),
    "first": lambda x: pnp.broadcast_to(x[0], (SIZE,)),
    "padded": lambda x: lax.pad(x[3:], x.dtype.type(0), [(1, 2, 0)]),
    "after_ones": lambda x: pnp.concatenate([pnp.ones(5, x.dtype), x[5:]]),
    "at_a_position": lambda x: lax.dynamic_slice(pnp.tile(x, 2), (2,), (SIZE,)),
    "into_zeros": lambda x: lax.dynamic_update_slice(pnp.zeros_like(x), x[4:], (1,)),
}
_POWERS = (-3, -2, -1, 0, 1, 2, 3, 4, 5)


def kind_of(dtype: str) -> str:
    """Return the letter of a kind of dtypes: f, i, u, c, b."""
    return (
        "b" if dtype == "bool" else "u" if dtype[0] == "u" else "f" if dtype[0] == "b" else dtype[0]
    )


def parts(dtype: str) -> str:
    """Return the dtype of the parts of a complex one."""
    return {"complex64": "float32", "complex128": "float64"}[dtype]


class Node(NamedTuple):
    """One operation: its name, its operands (numbers of values, or `Number`), the dtype and the
    shape of its result, and what else it is given."""

    name: str
    args: tuple[Any, ...]
    dtype: str
    extra: Any = None
    shape: Shape = VECTOR


class Number(NamedTuple):
    """A number that is written into the expression: a Python scalar, or an array that it fills."""

    value: Any
    filled: bool


class Expression(NamedTuple):
    """The dtypes of its arguments, their shape, and its operations, the last of which is its
    result."""

    arguments: tuple[str, ...]
    nodes: tuple[Node, ...]
    shape: Shape = VECTOR

    @property
    def rounded(self) -> bool:
        """Return whether one of its operations may be rounded in more than one way."""
        return any(n.name in ROUNDED for n in self.nodes)

    def text(self) -> str:
        """Return the expression as lines of Python."""
        lines = [f"v{i}: argument {d}{[*self.shape]}" for i, d in enumerate(self.arguments)]
        for i, n in enumerate(self.nodes, len(self.arguments)):
            args = [f"v{a}" if isinstance(a, int) else _written(a) for a in n.args]
            extra = "" if n.extra is None else f", {n.extra}"
            lines.append(f"v{i} = {n.name}({', '.join(args)}{extra})  # {n.dtype}{[*n.shape]}")
        return "\n".join(lines)


def _written(n: Number) -> str:
    return f"full({n.value})" if n.filled else repr(n.value)


# ---- values ----------------------------------------------------------------------------------


def extremes(dtype: str) -> list[Any]:
    """Return the values that arithmetic of a dtype is bad at."""
    kind = kind_of(dtype)
    if kind == "b":
        return [False, True]
    info = plait.numpy.iinfo(dtype) if kind in "iu" else plait.numpy.finfo(dtype)
    if kind in "iu":
        low, high = int(info.min), int(info.max)
        root = int(high**0.5)
        found = [0, 1, 2, 3, 5, 7, 10, root, root + 1, high // 2, high // 2 + 1, high - 1, high]
        return found + [-v for v in found if low < 0] + ([low, low + 1, low // 2] if low else [])
    high, tiny, eps = float(info.max), float(info.tiny), float(info.eps)
    half, third = high**0.5, high ** (1 / 3)
    sizes = [0.0, 0.5, 1.0, 2.0, 3.0, 1 + eps, 1 - eps / 2, 0.1, 10.0, 0.75, high, high / 2]
    sizes += [half, 2 * half, third, 1 / half, 1 / third, tiny, 2 * tiny, 4 / high, 300.0, 1e-3]
    found = [s for v in sizes if v >= tiny or not v for s in (v, -v)]
    return [*found, float("inf"), -float("inf"), float("nan")]


def array(rng: np.random.RandomState, dtype: str) -> np.ndarray:
    """Return an argument: extreme values in random order among numbers of all sizes."""
    kind = kind_of(dtype)
    if kind == "c":
        re, im = array(rng, parts(dtype)), array(rng, parts(dtype))
        out = np.empty(SIZE, dtype)
        out.real, out.imag = re, im
        return out
    known = np.array(extremes(dtype), dtype=object)
    some = list(rng.choice(known, SIZE))
    if kind == "f":
        high = float(plait.numpy.finfo(dtype).max)
        for i in range(0, SIZE, 3):
            size = np.exp(rng.uniform(-0.9, 0.9) * np.log(high)) if i % 2 else rng.uniform(0, 4)
            size = max(size, float(plait.numpy.finfo(dtype).tiny))
            some[i] = float(size * rng.choice([-1.0, 1.0]))
    with np.errstate(all="ignore"):
        return np.asarray(some, np.float64 if kind == "f" else None).astype(np.dtype(dtype))


# ---- expressions -----------------------------------------------------------------------------


class Maker:
    """Draws one expression."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.main = rng.choices(DTYPES, WEIGHTS)[0]
        self.arguments = (self.main,) * rng.choice([1, 2, 2, 3])
        self.begin = self.shape = rng.choice(BEGINNINGS)
        self.types: list[tuple[str, Shape]] = [(self.main, self.begin)] * len(self.arguments)
        self.nodes: list[Node] = []

    def expression(self) -> Expression:
        """Return it."""
        for _ in range(self.rng.choice([1, 2, 2, 3, 3, 4, 5])):
            node = self.node()
            self.nodes.append(node)
            self.types.append((node.dtype, node.shape))
        return Expression(self.arguments, tuple(self.nodes), self.begin)

    @property
    def dtypes(self) -> list[str]:
        """The dtypes of the values of the present shape."""
        return [d for d, s in self.types if s == self.shape]

    def value(self, dtype: str, shape: Shape | None = None) -> int | None:
        """Return the number of a value of that dtype and shape: mostly one of the last."""
        wanted = (dtype, self.shape if shape is None else shape)
        those = [i for i, t in enumerate(self.types) if t == wanted]
        if not those:
            return None
        return those[-1] if self.rng.random() < 0.5 else self.rng.choice(those)

    def operand(self, dtype: str) -> Any:
        """Return a value of that dtype, or a number."""
        if self.rng.random() < 0.25 and kind_of(dtype) != "c":
            value = self.rng.choice(extremes(dtype))
            return Number(value, self.rng.random() < 0.4)
        found = self.value(dtype)
        return Number(self.rng.choice(extremes(dtype)), True) if found is None else found

    def node(self) -> Node:
        """Return an operation on what there is so far, of the kind of the last value mostly."""
        dtype, self.shape = (
            self.types[-1] if self.rng.random() < 0.8 else self.rng.choice(self.types)
        )
        if self.shape == VECTOR and self.rng.random() < 0.05:
            return Node(self.rng.choice(list(_MOVES)), (self.value(dtype),), dtype)
        if self.rng.random() < (0.2 if self.shape == VECTOR else 0.35):
            found = self.of_arrays(dtype)
            if found is not None:
                return found
        return {"b": self.logical, "f": self.floating, "c": self.complex}.get(
            kind_of(dtype), self.whole
        )(dtype)._replace(shape=self.shape)

    def of_arrays(self, dtype: str) -> Node | None:
        """Return an operation that moves or combines the elements of a value, if there is one."""
        fit = []
        for name, o in ARRAY_OPERATIONS.items():
            if self.shape in o.shapes and kind_of(dtype) in o.kinds:
                others, shape = o.shapes[self.shape]
                if all((dtype, s) in self.types for s in others):
                    fit.append((name, others, o.dtype or dtype, shape))
        if not fit or dtype.startswith("float8"):
            return None
        name, others, result, shape = self.rng.choice(fit)
        args = (self.value(dtype), *(self.value(dtype, s) for s in others))
        return Node(name, args, result, None, shape)

    def logical(self, dtype: str) -> Node:
        choice = self.rng.random()
        if choice < 0.5:
            of = self.rng.choice([d for d in self.dtypes if d != "bool"] or [self.main])
            return Node("where", (self.value("bool"), self.operand(of), self.operand(of)), of)
        if choice < 0.75:
            return self.converted("bool")
        name = self.rng.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne"])
        return Node(name, (self.value("bool"), self.value("bool")), "bool")

    def converted(self, dtype: str) -> Node:
        to = self.rng.choice([self.main, *NUMBERS])
        if kind_of(to) == "c":
            to = parts(to)
        if kind_of(dtype) == "f" and kind_of(to) in "iu":
            to = self.rng.choice([d for d in FLOATS if d != dtype])
        return Node("convert_element_type", (self.value(dtype),), to, to)

    def pair(self, dtype: str) -> tuple[Any, Any]:
        """Return two operands, at least one of them not a number written in the program."""
        x, y = self.value(dtype), self.operand(dtype)
        return (x, y) if self.rng.random() < 0.6 else (y, x)

    def common(self, dtype: str, choice: float) -> Node:
        """Return a comparison, a selection, a clamp, or a conversion."""
        if choice < 0.4:
            return Node(self.rng.choice(_COMPARISONS.split()), self.pair(dtype), "bool")
        if choice < 0.6:
            return Node(
                "clamp", (self.operand(dtype), self.value(dtype), self.operand(dtype)), dtype
            )
        if choice < 0.8 and "bool" in self.dtypes:
            return Node("where", (self.value("bool"), *self.pair(dtype)), dtype)
        return self.converted(dtype)

    def floating(self, dtype: str) -> Node:
        choice = self.rng.random()
        if choice < 0.42:
            names = ["div", "mul", "add", "sub"] * 3 + _FLOAT_BINARY.split()
            return Node(self.rng.choice(names), self.pair(dtype), dtype)
        if choice < 0.7:
            every = self.rng.random() < 0.4 and not dtype.startswith("float8")
            names = _FLOAT_UNARY if every else _OFTEN
            return Node(self.rng.choice(names.split()), (self.value(dtype),), dtype)
        if choice < 0.78:
            exponent = self.rng.choice(_POWERS)
            return Node("integer_pow", (self.value(dtype),), dtype, exponent)
        if choice < 0.8:
            return Node("is_finite", (self.value(dtype),), "bool")
        return self.common(dtype, self.rng.random())

    def whole(self, dtype: str) -> Node:
        choice = self.rng.random()
        if choice < 0.4:
            names = ["div", "mul", "add", "sub", "rem"] * 2 + _WHOLE_BINARY.split()
            return Node(self.rng.choice(names), self.pair(dtype), dtype)
        if choice < 0.65:
            return Node(self.rng.choice(_WHOLE_UNARY.split()), (self.value(dtype),), dtype)
        if choice < 0.72:
            return Node("integer_pow", (self.value(dtype),), dtype, self.rng.choice(_POWERS[3:]))
        return self.common(dtype, self.rng.random())

    def complex(self, dtype: str) -> Node:
        choice = self.rng.random()
        if choice < 0.4:
            name = self.rng.choice(_COMPLEX_BINARY.split())
            return Node(name, (self.value(dtype), self.value(dtype)), dtype)
        if choice < 0.65:
            return Node(self.rng.choice(_COMPLEX_UNARY.split()), (self.value(dtype),), dtype)
        if choice < 0.75:
            return Node(self.rng.choice(["eq", "ne"]), (self.value(dtype),) * 2, "bool")
        return Node(self.rng.choice(["real", "imag", "abs"]), (self.value(dtype),), parts(dtype))


def applied(node: Node, values: list[Any]) -> Any:
    """Return what an operation makes of values: arrays, or tracers."""
    args = [values[a] if isinstance(a, int) else _number(a, values, node) for a in node.args]
    if node.name in _MOVES:
        return _MOVES[node.name](*args)
    if node.name in ARRAY_OPERATIONS:
        return ARRAY_OPERATIONS[node.name].apply(*args)
    if node.name == "where":
        return lax.select(*args)
    if node.name == "round":
        return lax.round(args[0], lax.RoundingMethod.TO_NEAREST_EVEN)
    operation = getattr(lax, node.name)
    return operation(*args) if node.extra is None else operation(*args, node.extra)


def _number(n: Number, values: list[Any], node: Node) -> Any:
    dtype = node.dtype
    if dtype == "bool":  # of a comparison it is that of the operand beside
        dtype = next(values[a].dtype for a in node.args if isinstance(a, int))
    if n.filled or node.name in ("where", "clamp"):
        return pnp.full(node.shape, n.value, dtype)
    return np.dtype(dtype).type(n.value)


def by_function(expression: Expression, arguments: list[Any], way: int) -> tuple[Any, list[Any]]:
    """Return the value of an expression, and further values of functions that it calls.

    Args:
      expression: the expression.
      arguments: its arguments.
      way: a number that decides: whether operations are a jitted function, which ones, and whether
        this is called again, with other values.
    """
    n, values, others = len(expression.nodes), list(arguments), []
    kind, place = way % 4, way // 4
    first = place % n if kind > 1 else n
    last = first + 1 + place // n % (n - first) if first < n else n

    def function(values: list[Any]) -> list[Any]:
        values = list(values)
        for node in expression.nodes[first:last]:
            values.append(applied(node, values))
        return values[len(arguments) + first :]

    for node in expression.nodes[:first]:
        values.append(applied(node, values))
    if first < n:
        inner = plait.jit(function)
        values += inner(values)
        if kind == 3:
            others = inner([pnp.ones_like(v) for v in values[: len(arguments) + first]])
    for node in expression.nodes[last:]:
        values.append(applied(node, values))
    return values[-1], others


# ---- the comparison --------------------------------------------------------------------------


def bits(x: Any) -> np.ndarray:
    """Return a result as numbers that are equal where it is as good as equal."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return np.stack([bits(x.real), bits(x.imag)])
    if kind_of(x.dtype.name) != "f":
        return x
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        wide = np.where(np.isnan(wide), np.float64("nan"), wide)
        small = np.abs(wide) < float(plait.numpy.finfo(x.dtype.name).tiny)
        return np.where(small, np.copysign(0.0, wide), wide).view(np.uint64)


_ALIKE = "neg abs sign floor ceil round stop_gradient square sqrt reciprocal"
ROUNDED = {*_FLOAT_UNARY.split(), *_COMPLEX_UNARY.split(), "pow", "atan2"} - {*_ALIKE.split()}
"""Operations that the compiler writes with others or looks up in a library: how they are rounded
may depend on what is computed beside them."""
_NEAR = 16


def differs(got: Any, want: Any, rounded: bool = False) -> np.ndarray:
    """Return of which elements two results differ; `rounded`: by more than the last bits."""
    found = bits(got) != bits(want)
    if rounded and kind_of(np.asarray(want).dtype.name) in "fc":
        found &= ~near(np.asarray(got), np.asarray(want))
    return found.any(0) if found.ndim > 1 else found


def near(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return of which elements two results are equal but for the last bits, part by part.

    The last bits also decide which results about the greatest number are infinite, and which about
    the least are zero.
    """
    if got.dtype.kind == "c":
        return np.stack([near(got.real, want.real), near(got.imag, want.imag)])
    info = plait.numpy.finfo(want.dtype.name)
    high, tiny, room = float(info.max), float(info.tiny), _NEAR * float(info.eps)
    a, b = got.astype(np.longdouble), want.astype(np.longdouble)
    with np.errstate(all="ignore"):
        a, b = (
            np.where(np.isinf(x), np.sign(x) * high * np.longdouble(1 + room), x) for x in (a, b)
        )
        a, b = (np.where(np.abs(x) < tiny, np.copysign(tiny, x), x) for x in (a, b))
        return np.abs(a - b) <= 2 * room * np.abs(b)


class Batch:
    """The expressions of one seed, with their arguments."""

    def __init__(self, seed: int, size: int = BATCH):
        rng, numbers = random.Random(seed), np.random.RandomState(seed % 2**32)
        self.seed = seed
        self.arrays = {d: [pnp.asarray(array(numbers, d)) for _ in range(3)] for d in DTYPES}
        self.expressions = [Maker(rng).expression() for _ in range(size)]

    def arguments(self, e: Expression) -> list[Any]:
        """Return the arguments of an expression."""
        return [self.arrays[d][i].reshape(e.shape) for i, d in enumerate(e.arguments)]

    def wrong(self) -> Iterator[str]:
        """Yield what differs, each time with the least part of the expression that does."""
        known = [Known(e, self.arguments(e)) for e in self.expressions]

        rng = random.Random(self.seed)
        ways = [rng.randrange(1 << 10) for _ in known]

        def every(arguments: list[list[Any]]) -> list[Any]:
            return [by_function(k.expression, xs, way)
                    for k, xs, way in zip(known, arguments, ways, strict=True)]  # fmt: skip

        got = compiled(every, [k.arguments for k in known])
        for k, way, (g, _) in zip(known, ways, got, strict=True):
            if k.wrong(g).any():
                yield self.shown(k, way)

    def shown(self, known: "Known", way: int) -> str:
        """Return the difference of an expression in words."""
        n = len(known.expression.nodes)
        for part, kind in [*((known.part(i), 0) for i in range(1, n + 1)), (known, way)]:
            got, _ = compiled(
                lambda *xs, e=part.expression, way=kind: by_function(e, list(xs), way),
                *part.arguments,
            )
            found = part.wrong(got)
            if found.any():
                i = int(np.flatnonzero(found)[0])
                same = [np.asarray(v) for v in part.values if v.shape == found.shape]
                at = [str(v.reshape(-1)[i]) for v in same]
                rest = f"values {at}, compiled {np.asarray(got).reshape(-1)[i]}"
                of = f"seed {self.seed}, way {kind}, {found.sum()} elements"
                return f"{of}\n{part.expression.text()}\n{rest}"
        return f"seed {self.seed}, only in the batch:\n{known.expression.text()}"


def compiled(f: Any, *arguments: Any) -> Any:
    """Return the results of a function compiled now: programs on disk may be of another tree."""
    with plait.config(cache_dir=None):
        return plait.jit(f)(*arguments)


class Known:
    """An expression with the values of all its operations, one after the other; it ends with the
    first sum whose value depends on the order of its terms."""

    def __init__(self, e: Expression, arguments: list[Any]):
        self.arguments = arguments
        self.values = list(arguments)
        self.terms: list[np.ndarray] | None = None
        self.expression = e
        for n, node in enumerate(e.nodes, 1):
            self.values.append(applied(node, self.values))
            o = ARRAY_OPERATIONS.get(node.name)
            if o is not None and o.terms is not None and kind_of(node.dtype) in "fc":
                terms = terms_of(o, [self.values[a] for a in node.args])
                if not is_exact(terms, node.dtype):
                    self.terms = terms
                    self.expression = e._replace(nodes=e.nodes[:n])
                    return

    def part(self, n: int) -> "Known":
        """Return the expression that ends with the operation `n`."""
        return Known(self.expression._replace(nodes=self.expression.nodes[:n]), self.arguments)

    def sums(self, means: list[np.ndarray]) -> list[np.ndarray]:
        """Return sums of terms, from their means if the last operation returns these."""
        assert self.terms is not None
        if not ARRAY_OPERATIONS[self.expression.nodes[-1].name].divided:
            return means
        return [m.astype(np.longdouble) * self.terms[0].shape[-1] for m in means]

    def wrong(self, got: Any) -> np.ndarray:
        """Return which elements a compiled program must not return."""
        rounded = self.expression.rounded
        got, want = np.asarray(got), np.asarray(self.values[-1])
        if self.terms is None:
            return differs(got, want, rounded)
        parts = [got.real, got.imag] if got.dtype.kind == "c" else [got]
        name = parts[0].dtype.name
        slack = 2 * _NEAR if rounded else 0
        found = [
            outside(g, t, name, slack) for g, t in zip(self.sums(parts), self.terms, strict=True)
        ]
        return np.logical_or.reduce(found)


# ---- as a script -----------------------------------------------------------------------------


def main() -> int:
    """Run expressions for some minutes, and return whether any differs."""
    given, status = begin(
        "tests.fuzz.random_expressions", "run random expressions for some minutes", ENVIRONMENT
    )
    if status is not None:
        return status
    warnings.simplefilter("error")
    found = done = 0
    for seed in seeds(given, BATCH):
        for text in Batch(seed).wrong():
            found += 1
            print(text, flush=True)
        done += BATCH
        if done % (50 * BATCH) == 0:  # else the process would run out of mappings for their code
            plait.clear_caches()
            gc.collect()
        if done % (50 * BATCH) == 0:
            print(f"{done} expressions, {found} differ", flush=True)
    print(f"{done} expressions: {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
