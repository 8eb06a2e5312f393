"""Programs as text: what prints is read back as the same program."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import plait
from plait import _control
from plait._base.jaxlib_api import EXTRA_DTYPES
from plait._core import primitive
from plait._core.array import Literal, asarray
from plait._core.check import check
from plait._core.ir import Effect, Eqn, Program, Thunk, Var, programs_in
from plait._core.primitive import Primitive
from plait._core.staging import staged
from plait._ops import callbacks, control_flow, reduction, shape
from plait._ops import elementwise as el
from plait._types.avals import Aval, float0
from plait._types.dims import Scope, symbolic_dims
from plait.errors import ProgramError
from plait.testing import numpy_evaluate, random_arguments, random_program
from plait.text import parse, same_program, show

F3 = Aval((3,), np.float32)
CELL = Aval((), np.float32)


def program(f, *avals, name="f"):
    return staged(f, avals, name)


def again(p, *consts):
    """The program read from its text, after all checks."""
    said = show(p)
    q = parse(said, consts)
    assert same_program(p, q)
    assert show(q) == said
    return check(q)


# ---- the form --------------------------------------------------------------------------------


def test_the_form_of_everything():
    inner = program(lambda c, x: [el.add.bind(c, x)], CELL, CELL, name="step")

    def f(x, y):
        z = el.mul.bind(el.sin.bind(x), Literal(2.0, F3))
        k = asarray(np.float32([1, -0.0, np.inf]))
        big = asarray(np.ones(100, np.float32))
        total = reduction.reduce_sum.bind(big, axes=(0,))
        w = el.add.bind(z, k)
        (u,) = control_flow.call.bind(y, total, program=inner)
        (v,) = control_flow.scan.bind(
            u, w, body=inner, consts=0, carry=1, length=3, reverse=False, unroll=1
        )
        return [v, Literal(1, F3)]

    p = program(f, F3, CELL)
    assert str(p) == show(p) == (
        "@1 = step(%0: f32[], %1: f32[]) {\n"
        "  %2: f32[] = core.add(%0, %1)\n"
        "  return %2\n"
        "}\n"
        "f(%0: f32[3], %1: f32[]) {\n"
        "  const %2: f32[100] = @0\n"
        "  const %3: f32[3] = [1.0, -0.0, inf]\n"
        "  %4: f32[3] = core.sin(%0)\n"
        "  %5: f32[3] = core.mul(%4, 2.0:f32[3])\n"
        "  %6: f32[] = core.reduce_sum(%2; axes=(0,))\n"
        "  %7: f32[3] = core.add(%5, %3)\n"
        "  %8: f32[] = core.call(%1, %6; program=@1)\n"
        "  %9: f32[] = core.scan(%8, %7; consts=0, carry=1, length=3, reverse=false, unroll=1, "
        "body=@1)\n"
        "  return %9, 1:f32[3]\n"
        "}"
    )  # fmt: skip
    q = again(p, np.ones(100, np.float32))
    call, scan = q.eqns[-2:]
    assert call.params["program"] is scan.params["body"], "what is shared stays shared"


def test_a_program_inside_stands_where_it_is_used():
    inner = program(lambda x: [el.neg.bind(x)], CELL, name="inner")
    p = program(lambda x: control_flow.call.bind(x, program=inner), CELL)
    assert show(p) == (
        "f(%0: f32[]) {\n"
        "  %1: f32[] = core.call(%0; program=inner(%0: f32[]) {\n"
        "    %1: f32[] = core.neg(%0)\n"
        "    return %1\n"
        "  })\n"
        "  return %1\n"
        "}"
    )  # fmt: skip
    again(p)


def test_programs_are_printed_last_and_branches_one_after_the_other():
    one = program(lambda x: [el.neg.bind(x)], CELL, name="one")
    two = program(lambda x: [x], CELL, name="two")
    index = Aval((), np.int32)
    p = program(lambda i, x: control_flow.cond.bind(i, x, branches=(one, two)), index, CELL)
    q = again(p)
    assert [b.name for b in q.eqns[0].params["branches"]] == ["one", "two"]


def test_nothing_at_all():
    p = program(lambda: [])
    assert show(p) == "f() {\n  return\n}"
    again(p)
    q = program(lambda: [Literal(1, CELL)])
    assert again(q).out_avals == [CELL]


def test_an_operation_without_operands():
    p = program(lambda: [shape.iota_.bind(shape=(2, 3), axis=1, dtype=np.dtype(np.int8))])
    assert "= core.iota(shape=(2, 3), axis=1, dtype=i8)\n" in show(p)
    again(p)


def test_user_functions_and_their_names():
    p = plait.make_program(lambda x: el.sin(x))(np.float32(1))
    assert show(p).startswith("lambda(%0: f32[])")
    assert again(p).name == "<lambda>"
    for name in ("lambda", "a name", 'it\'s "one"', "two\nlines", "f", "step_2", "return"):
        assert again(program(lambda x: [x], CELL, name=name)).name == name
    inner = program(lambda x: [x], CELL, name="set")
    odd = program(lambda x: [x], CELL, name="two words")
    q = again(program(lambda x: [*control_flow.call.bind(x, program=inner),
                                 *control_flow.call.bind(x, program=odd)], CELL))  # fmt: skip
    assert [p.name for e in q.eqns for p in programs_in(e.params)] == ["set", "two words"]


def test_locations_are_comments():
    p = plait.make_program(lambda x: el.sin(x))(np.float32(1))
    said = show(p, locations=True)
    assert "core.sin(%0)  # " in said and "test_text.py:" in said
    assert same_program(parse(said), p)


# ---- types, literals, constants --------------------------------------------------------------

DTYPES = [
    *map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")),
    *map(np.dtype, ("uint64", "float16", "float32", "float64", "complex64", "complex128")),
    *EXTRA_DTYPES.values(),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_every_dtype(dtype):
    aval = Aval((2, 0, 3), dtype)
    p = program(lambda x: [x, shape.convert_.bind(x, dtype=dtype, weak=False)], aval)
    assert again(p).in_avals == [aval]
    values = np.array([0, 1, 1, 0], np.float32).astype(dtype)
    q = again(program(lambda: [asarray(values)]))
    assert np.asarray(q.consts[0][1]).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "value",
    [0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, -1e-7, 1e22, math.inf, -math.inf, math.nan, 0, -7, 2**62,
     True, False, 1 + 2j, complex(-0.0, 0.0), complex(0.0, -0.0), complex(math.inf, math.nan),
     complex(-1e-9, -math.inf)],
    ids=repr,
)  # fmt: skip
def test_literals_keep_class_sign_and_bits(value):
    kind = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}[type(value)]
    aval = Aval((4, 5), kind)
    (got,) = again(program(lambda: [Literal(value, aval)])).outputs
    assert type(got.value) is type(value)
    assert repr(got.value) == repr(value)
    assert got.aval is aval


def test_an_integer_that_stands_for_floats_stays_one():
    (got,) = again(program(lambda: [Literal(0, F3)])).outputs
    assert type(got.value) is int


def test_weak_types():
    weak = Aval((2,), np.float32, True)
    p = program(lambda x: [el.mul.bind(x, Literal(2.0, weak))], weak)
    assert "%0: f32[2]*" in show(p) and "2.0:f32[2]*" in show(p)
    assert again(p).out_avals == [weak]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_constants_keep_every_bit(dtype):
    """Against the bits themselves: 400 random bit patterns of each dtype, 8 at a time."""
    dtype = plait.dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 256, (50, 8 * np.dtype(dtype).itemsize), np.uint8)
    for row in bits:
        x = row.view(dtype)
        with np.errstate(invalid="ignore"):
            x = np.where(x == x, x, np.ones_like(x))
        ((_, got),) = again(program(lambda x=x: [asarray(x)])).consts
        assert np.asarray(got).tobytes() == x.tobytes()


def test_constants_of_other_kinds():
    for x in (
        np.array([2**64 - 1, 0], np.uint64), np.array([-(2**63)], np.int64),
        np.array([[True], [False]]), np.array([1 - 2j, complex(-0.0, -0.0)]), np.zeros((0, 3)),
        np.float32([np.nan, 1]), np.float64(3.5), np.zeros((2, 2, 2), np.int8),
    ):  # fmt: skip
        x = np.asarray(x)
        ((_, got),) = again(program(lambda x=x: [asarray(x, x.dtype)])).consts
        assert np.asarray(got).dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got), x)


def test_short_decimals_are_used_where_they_are_exact():
    assert "[0.1, 0.3333333]" not in show(program(lambda: [asarray(np.float32([0.1, 1 / 3]))]))
    assert "= [0.1, 0.33333334]" in show(program(lambda: [asarray(np.float32([0.1, 1 / 3]))]))


def test_large_constants_are_numbered_and_given():
    a, b = asarray(np.arange(10.0)), asarray(np.ones((3, 4), np.int32))
    inner = program(lambda x: [el.add.bind(x, a)], a.aval, name="inner")

    def f(x):
        (y,) = control_flow.call.bind(el.mul.bind(x, a), program=inner)
        return [y, b]

    p = program(f, a.aval)
    q = again(p, a, np.asarray(b))
    assert q.consts[0][1] is a
    assert programs_in(q.eqns[1].params)[0].consts[0][1] is a, "one array stays one array"
    with pytest.raises(ProgramError, match=r"line 3, column 24: the elements of i32\[3,4\]"):
        parse(show(p), [a])
    with pytest.raises(ProgramError, match=r"the constant given is f64\[10\], not i32\[3,4\]"):
        parse(show(p), [a, a])


def test_a_deleted_constant_prints_without_its_elements():
    x = asarray(np.float32([1, 2]))
    p = program(lambda: [x])
    x.delete()
    assert "const %0: f32[2] = @0" in show(p)


# ---- symbolic sizes --------------------------------------------------------------------------


def test_symbolic_sizes_and_what_is_known_of_them():
    scope = Scope(["b >= 4", "mod(b, 8) == 0", "a <= b"], lower=0)
    a, b = symbolic_dims("a, b", scope)
    x = Aval((a, 2 * b + 1), np.float32)

    def f(x):
        y = shape.broadcast_in_dim.bind(x, shape=(b // 8, a, 2 * b + 1), dims=(1, 2))
        return [y, Literal(1.0, Aval((a * b,), np.float32))]

    p = program(f, x)
    first, second = show(p).split("\n")[:2]
    assert first.startswith("given least 0; ")
    assert second == "f(%0: f32[a,2*b + 1]) {"
    q = again(p)
    assert q.out_avals == p.out_avals
    assert q.in_avals[0].shape[0].scope is scope


def test_sizes_that_nothing_is_known_of_need_no_line():
    (b,) = symbolic_dims("b")
    p = program(lambda x: [shape.reshape_.bind(x, shape=(b, 1, 3))], Aval((b, 3), np.float32))
    assert "shape=({b}, 1, 3)" in show(p)
    assert show(p).startswith("f(%0: f32[b,3])")
    again(p)


# ---- parameters ------------------------------------------------------------------------------


class Inner(NamedTuple):
    axes: tuple
    scale: float


class Outer(NamedTuple):
    inner: Inner | None
    name: str


class Stranger(NamedTuple):
    x: int


def _identity(x: Aval, *, first: Outer, **params) -> Aval:
    """x."""
    return x


said = Primitive("testing.said", _identity)
NONE = Outer(None, "none")


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 1, -3, 10**30, 1.0, -0.0, 1e-9, math.inf, -math.inf, 2j, -0.0 - 2j, "",
     "a 'b' \"c\"\n\\", "true", b"\x00'\xff", (), (1,), (1, 2.0, "x"), ((1, 2), ((3,),), None),
     np.dtype(np.float32), np.dtype(bool), EXTRA_DTYPES["bfloat16"], np.dtype(float0), F3,
     Aval((), np.int8, True), np.float32(0.1), np.int8(-3), np.bool_(True), np.complex64(1 - 2j),
     frozenset((1, 2, 3)), frozenset(), ..., NONE, Outer(Inner((1, 2), -0.0), "both"),
     (NONE, Inner((), math.inf)), slice],
    ids=repr,
)  # fmt: skip
def test_every_kind_of_parameter(value):
    p = program(lambda x: [said.bind(x, first=NONE, other=value)], CELL)
    if value is slice:
        with pytest.raises(ProgramError, match="other of testing.said is <type>, which has no"):
            parse(show(p))
        return
    got = again(p).eqns[0].params["other"]
    assert type(got) is type(value)
    assert repr(got) == repr(value)


def test_a_nan_parameter():
    p = program(lambda x: [said.bind(x, first=NONE, other=math.nan)], CELL)
    assert math.isnan(again(p).eqns[0].params["other"])


def test_a_dim_parameter_and_programs_in_records():
    (b,) = symbolic_dims("b")
    p = program(lambda x: [said.bind(x, first=NONE, other=(b, 2 * b, b % 3))], CELL)
    assert again(p).eqns[0].params["other"] == (b, 2 * b, b % 3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(lambda x: x, "<function lambda>"), (print, "<function print>"), (object(), "<object>"),
     (Thunk(lambda: None), "<rule>"), (Stranger(1), "<Stranger>"), (np.dtype("U3"), "<StrDType>"),
     (np.dtype(">f4"), "<Float32DType>")],
    ids=lambda v: v if isinstance(v, str) else "value",
)  # fmt: skip
def test_what_has_no_text_form_is_shown_and_refused(value, shown):
    p = program(lambda x: [said.bind(x, first=NONE, other=(1, value))], CELL)
    assert f"other=(1, {shown})" in show(p)
    with pytest.raises(ProgramError) as e:
        parse(show(p))
    assert f"the parameter other of testing.said is {shown}, which has no text form" in str(e.value)
    assert "line 2, column 80" in str(e.value)


def test_dimension_numbers_of_the_families():
    """Records of real primitives are found by their annotations."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    i = np.array([[2], [0]], np.int32)
    p = plait.make_program(lambda x: x[i[:, 0]])(x)
    assert "GatherDimensionNumbers(" in show(p)
    again(p)


# ---- effects ---------------------------------------------------------------------------------


def test_effects_follow_the_program():
    acts = Primitive(
        "testing.acts", lambda *, name, ordered: [], many=True,
        effect=lambda p: Effect(p["name"], p["ordered"]),
    )  # fmt: skip

    def f(x):
        acts.bind(name="io", ordered=True)
        acts.bind(name="debug", ordered=False)
        return [x]

    inner = program(f, CELL, name="inner")
    p = program(lambda x: [*control_flow.call.bind(x, program=inner), x], CELL)
    assert show(p).endswith("\n} does debug and ordered io")
    assert "\n  } does debug and ordered io)\n" in show(p)
    assert again(p).effects == p.effects
    with pytest.raises(ProgramError, match="the equations of f do debug and ordered io"):
        parse(show(p).removesuffix(" does debug and ordered io"))
    with pytest.raises(ProgramError, match="the equations of g do nothing"):
        parse("g() { return } does io")


def test_callbacks_print_and_are_refused():
    p = plait.make_program(lambda x: callbacks.pure_callback(np.sin, x, x))(np.float32(1))
    assert "f=<function flat>" in show(p)
    with pytest.raises(ProgramError, match="the parameter f of core.host is <function flat>"):
        parse(show(p))


# ---- random programs -------------------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_programs_are_read_back(start):
    for seed in range(start, start + 50):
        p = random_program(seed)
        q = again(p)
        args = random_arguments(p, seed)
        for a, b in zip(numpy_evaluate(p, args), numpy_evaluate(q, args), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_what_was_read_can_be_compiled_and_run():
    p = plait.make_program(lambda x: _control.scan(lambda c, _: (el.sin(c), c), x, None, 3))(
        np.float32(1)
    )
    q = again(p)
    end, ys = plait.jit(
        lambda x: plait.text.parse(show(q)) and control_flow.call.bind(x, program=q)
    )(np.float32(1))
    want = [1, math.sin(1), math.sin(math.sin(1)), math.sin(math.sin(math.sin(1)))]
    np.testing.assert_allclose([*np.asarray(ys), end], want, 1e-6)


# ---- equality --------------------------------------------------------------------------------

TEMPLATE = "f(%0: f32[2], %1: f32[2]) {{ {} return {} }}"


def read(body, out="%2"):
    return parse(TEMPLATE.format(body, out))


@pytest.mark.parametrize(
    ("body", "out"),
    [
        ("%2: f32[2] = core.add(%1, %0)", "%2"),
        ("%2: f32[2] = core.add(%0, %0)", "%2"),
        ("%2: f32[2] = core.sub(%0, %1)", "%2"),
        ("%2: f32[2] = core.add(%0, %1) %3: f32[2] = core.neg(%2)", "%2"),
        ("%2: f32[2] = core.add(%0, 0.0:f32[2])", "%2"),
        ("%2: f32[2] = core.add(%0, %1)", "%2, %2"),
        ("%2: f32[2] = core.add(%0, %1)", "%0"),
        ("const %2: f32[2] = [1.0, 2.0]", "%2"),
    ],
)
def test_programs_that_differ(body, out):
    assert not same_program(read("%2: f32[2] = core.add(%0, %1)"), read(body, out))


def test_names_of_variables_do_not_matter_and_values_do():
    a, b = read("%2: f32[2] = core.neg(%1)"), read("%z: f32[2] = core.neg(%1)", "%z")
    assert same_program(a, b)
    for x, y in (("0.0", "-0.0"), ("1", "1.0"), ("nan", "0.0")):
        p, q = (read("", f"{v}:f32[2]") for v in (x, y))
        assert not same_program(p, q) and same_program(p, p)
    assert same_program(read("", "nan:f32[2]"), read("", "nan:f32[2]"))
    params = [f"%2: f32[2] = core.rev(%0; axes={a})" for a in ("(0,)", "()")]
    assert not same_program(*map(read, params))
    consts = [f"const %2: f32[2] = [{v}]" for v in ("1.0, nan", "1.0, nan", "1.0, 2.0")]
    p, q, r = map(read, consts)
    assert same_program(p, q) and not same_program(p, r)


# ---- errors ----------------------------------------------------------------------------------

GOOD = """f(%0: f32[3]) {
  %1: f32[3] = core.sin(%0)
  %2: f32[] = core.reduce_sum(%1; axes=(0,))
  return %2
}"""


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "what"),
    [
        ("%0: f32[3])", "%0 f32[3])", 1, 6, "':' is expected"),
        ("f32[3])", "g32[3])", 1, 7, "there is no dtype 'g32'"),
        ("f32[3])", "f32)", 1, 7, "a type, such as f32[3], is expected"),
        ("f(%0", "(%0", 1, 1, "the name of a program is expected"),
        ("f32[3])", "f32[3+])", 1, 7, "cannot read sizes"),
        ("%1: f32[3] =", "%0: f32[3] =", 2, 3, "%0 is defined twice"),
        ("core.sin(%0)", "core.sine(%0)", 2, 16, "there is no primitive 'core.sine'"),
        ("core.sin(%0)", "core.sin(%7)", 2, 25, "%7 is not defined yet"),
        ("core.sin(%0)", "core.sin(%0", 3, 3, "';' is expected"),
        ("core.sin(%0)", "core.sin(0.0)", 2, 28, "':' is expected"),
        ("core.sin(%0)", "core.sin(x:f32[3])", 2, 25, "a number is expected, not 'x'"),
        ("%1: f32[3] =", "%1: f32[4] =", 2, 3, "the results of core.sin are f32[3]"),
        ("axes=(0,)", "axes=(1,)", 3, 3, "core.reduce_sum refuses its operands or parameters"),
        ("axes=(0,)", "axis=0", 3, 3, "core.reduce_sum refuses its operands or parameters"),
        ("axes=(0,)", "axes=(0", 4, 3, "')' is expected"),
        ("axes=(0,)", "axes=zero", 3, 40, "there is no dtype 'zero'"),
        ("axes=(0,)", "axes=@3", 3, 40, "no program @3 is defined above"),
        ("axes=(0,)", "axes=Box(a=1)", 3, 40, "core.reduce_sum knows no record Box"),
        ("axes=(0,)", "axes=", 3, 40, "a value is expected"),
        ("return %2", "give %2", 4, 3, "there is no primitive 'give'"),
        ("return %2", "return %3", 4, 10, "%3 is not defined yet"),
        ("}", "", 5, 1, "'}' is expected"),
        ("}", "} }", 5, 3, "the end of the text is expected"),
    ],
)  # fmt: skip
def test_mistakes_are_pointed_at(old, new, line, column, what):
    assert GOOD.count(old) == 1
    with pytest.raises(ProgramError) as e:
        parse(GOOD.replace(old, new))
    assert e.value.what.startswith(f"line {line}, column {column}: {what}"), e.value.what
    shown, caret = e.value.what.split("\n")[-2:]
    assert caret.index("^") == 4 + column - 1
    assert shown[4:] == GOOD.replace(old, new).split("\n")[line - 1]


def test_other_mistakes():
    with pytest.raises(ProgramError, match="a program is read from a text"):
        parse(3)
    with pytest.raises(ProgramError, match="sizes of two scopes"):
        parse("given b >= 2\ngiven b >= 3\nf() { return }")
    with pytest.raises(ProgramError, match=r"line 1, column 1: no sizes satisfy"):
        parse("given b >= 2; b <= 1\nf() { return }")
    with pytest.raises(ProgramError, match="3 elements are given for f32"):
        parse("f() { const %0: f32[2] = [1, 2, 3] return %0 }")
    with pytest.raises(ProgramError, match="the fields of Inner are axes, scale"):
        parse("f(%0: f32[]) { %1: f32[] = testing.said(%0; first=Inner(axes=())) return %1 }")


def test_comments_and_blanks_do_not_matter():
    loose = GOOD.replace("\n", "  # a note: } return\n\n ").replace("(%0)", "(\n%0 ,)")
    with pytest.raises(ProgramError):
        parse(loose)
    loose = GOOD.replace("\n", "  # a note: } return\n\n ").replace("(%0)", "(\n%0 )")
    assert same_program(parse(loose), parse(GOOD))


def test_the_module_of_a_namespace_is_loaded(monkeypatch):
    """A primitive is looked for in what is installed before it is said not to exist."""
    asked = []

    def load(d):
        asked.append(d)
        Primitive("later.neg", lambda x: x)

    point = SimpleNamespace(name="later")
    monkeypatch.setattr(
        primitive, "declared", lambda group, name: (point,) if (group, name) == (
            "plait.primitives", "later") else ()
    )  # fmt: skip
    monkeypatch.setattr(primitive, "load", load)
    p = parse("f(%0: f32[]) { %1: f32[] = later.neg(%0) return %1 }")
    assert asked == [point] and p.eqns[0].prim.name == "later.neg"


def test_a_program_that_is_not_closed_still_prints():
    """For debugging what `check` refuses."""
    lost, out = Var(), Var()
    lost.aval = out.aval = CELL
    p = Program([], [Eqn(el.sin, [lost], (out,), {}, None)], [out])
    assert "core.sin(%?)" in show(p)
