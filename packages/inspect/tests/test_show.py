"""Pages of programs: well formed, safe, folded, with lines, notes and differences.

Invariant: the text of a page is compared with what the functions here do, equation by equation.
"""

import html
import html.parser
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import ext, lax
from plait.errors import ArgumentError

X = np.float32([1, 2, 3])
VOID = {"meta", "br"}


class Parsed(html.parser.HTMLParser):
    """The elements of a page; an error for one that does not end."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.words = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)

    def attributes(self, tag):
        return [a for t, a in self.seen if t == tag]


def model(x):
    y = pnp.sin(x)
    return y * x


def looped(x):
    def turn(c, a):
        return c * a, None

    return lax.scan(turn, 1.0, x)[0]


def test_equations_and_their_lines():
    page = Parsed(plait.show(model)(X).html)
    assert "%1: f32[3] = core.sin(%0)" in page.text
    assert "%2: f32[3] = core.mul(%1, %0)" in page.text
    assert "return %2" in page.text
    links = page.attributes("a")
    first = model.__code__.co_firstlineno
    assert [a["href"] for a in links] == [f"file://{__file__}#{first + n}" for n in (1, 2)]
    assert [a["title"] for a in links] == ["y = pnp.sin(x)", "return y * x"]


def test_programs_inside_fold():
    page = Parsed(plait.show(looped)(X).html)
    assert len(page.attributes("details")) == 2
    assert len(page.attributes("summary")) == 2
    assert "body=@1" in page.text
    assert "@1 = turn(" in page.text


def test_a_program_that_occurs_twice_is_shown_once():
    inner = plait.jit(lambda x: x * 2)
    page = Parsed(plait.show(lambda x: inner(inner(x)))(X).html)
    assert page.text.count("core.mul") == 1
    assert "as above" in page.text


def test_before_and_after():
    def more(x):
        return model(x) + 1

    page = plait.show(model, more)(X)
    assert page.html.count('class="e same"') == 2
    titles = re.findall("<h4>(.*?)(?: <span.*?)?</h4>", page.html)
    assert titles[:2] == ["model", "more"]


def test_what_a_page_says_is_text():
    def f(x):
        return x

    f.__name__ = "<script>alert(1)</script>"
    page = plait.show(f)(X).html
    assert "<script" not in page
    assert "alert(1)" in Parsed(page).text


def test_a_page_needs_nothing_from_elsewhere():
    page = plait.show(looped)(X).html
    assert not re.search(r"https?:|<script|<img|<link|@import|url\(", page)


def test_notebooks_show_programs_and_stages():
    program = plait.make_program(model)(X)
    lowered = plait.jit(model).lower(X)
    for shown in (program, plait.jit(model).trace(X), lowered, lowered.compile()):
        assert "core.sin" in Parsed(shown._repr_html_()).text
    memory = Parsed(lowered.compile()._repr_html_()).text
    assert "Memory of a call" in memory
    assert "argument12" in memory.replace(" ", "")  # three floats of four bytes


def test_files(tmp_path):
    page = plait.show(model)(X)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html
    assert str(page) == str(plait.make_program(model)(X))


def test_notes_of_collectives():
    f = lambda x: lax.psum(x, "i")  # noqa: E731
    program = plait.make_program(f, axis_env=[("i", 4)])(X)
    assert "sends 12 bytes over 'i'" in Parsed(program._repr_html_()).text


def test_packages_add_notes():
    prim = ext.Primitive("shown.twice", lambda x: x)
    ext.notes.note_rules.rule(prim)(lambda avals, outs, **params: f"<b>{len(avals)} operands</b>")
    page = plait.show(lambda x: prim.bind(x))(X).html
    assert "<b>1 operands</b>" in Parsed(page).text
    assert "<b>" not in page
    assert "--c:hsl(" in page  # the colour of the namespace


def test_sizes_known_by_name():
    n = plait.symbolic_dims("n")[0]
    page = plait.show(model)(plait.ShapeDtypeStruct((n,), "float32"))
    assert "f32[n]" in Parsed(page.html).text


@pytest.mark.parametrize("given", [(), (3,)])
def test_it_takes_functions(given):
    with pytest.raises(ArgumentError, match="needs functions"):
        plait.show(*given)
