"""The form of a call, and a generated Python function that unpacks calls of that form.

Flattening arguments in general costs more than running a small program.  But nearly every call
has the form of the previous one: the same tree of arguments with the same kinds of leaves.  So
for each form a function is generated once, which checks and unpacks only the necessary parts:

    def call(args, kwargs):
        try:
            t0, = args
            if t0.__class__ is not dict or len(t0) != 2: raise KeyError
            x0 = t0['a']
            x1 = t0['b']
            bufs = [x0._buf, x1._buf]
            run, handlers, key, build = table[x0.key, x1.key]
        except MISSES:
            return slow(args, kwargs)
        ...

`slow` flattens the arguments in the general way.  Results are assembled by a generated function
too.

Invariant: the source text depends on the structure alone, and a process has one text for each
form; a call of any other form is a miss.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple

from numpy import ndarray

from .._base import jaxlib_api
from .._base.freezing import freeze
from .._core.array import Array, failure, wrap
from .._core.same_parts import Pattern, as_one
from .._types.avals import Aval, Placed
from .._xla.operands import as_argument, as_donated
from ..tree import KeyedTree, TreeDef, bare_tree, exact_key, is_named_tuple

Args = tuple[Any, ...]
"""The positional arguments of a call."""
Kwargs = dict[str, Any]
"""The keyword arguments of a call."""
Way = Callable[[Args, Kwargs], Any]
"""A function that performs a whole call."""

_MOST = 128
"""The most leaves of a tree with a generated function; beyond, generating it costs too much."""

_DEEPEST = 64
"""The most levels of a tree with a generated function: Python allows 200 nested brackets."""


HOSTED_BYTES = 4096
"""The most bytes of a numpy array that a call copies and gives to the runtime directly.

The copy is needed because the runtime may read the memory until the program has run; by then, the
array's owner may have written to it."""


class CallForm(NamedTuple):
    """The structure of a call's arguments, and the kind of each leaf.

    `key` is the `exact_key` of the structure of (args, kwargs).  `leaves` has a letter for each
    leaf: an `a`rray; a `d`onated array; a `s`tatic value; a `v`alue that becomes an array first; a
    donated value that becomes its `o`wn array; a `n`umpy array that the runtime takes directly; an
    array that is moved to its `p`lace first.
    """

    key: TreeDef | KeyedTree
    leaves: str

    @property
    def tree(self) -> TreeDef:
        """The structure of (args, kwargs)."""
        return bare_tree(self.key)


class _Unwritten(Exception):
    """Raised for a structure that no function is generated for."""


# ---- calls ---------------------------------------------------------------------------------


def taker(
    form: CallForm, table: dict[Any, Any], slow: Way, there: Sequence[Callable[[Any], Any]] = ()
) -> Way | None:
    """Return a function that performs calls of this form by `table`, and gives others to `slow`.

    Args:
      form: the form.
      table: maps the dispatch keys of the leaves (or the only one) to (run, handlers, key, build).
        A static value counts as two keys, its class and itself.  For a form with `n` leaves, the
        values are functions of buffers and numpy arrays, which return the results, or the buffer of
        the only one.
      slow: performs other calls.
      there: moves the leaves with the letter `p`, one function for each.

    Returns None if the structure is too large or unusual.
    """
    make = _written(form)
    return None if make is None else make(table, slow, there)


def looked_up(form: CallForm, keys: Sequence[Any]) -> Any:
    """Return the key of a call in the table of its form.

    `keys` are those of all its leaves; a static leaf has two, its class and its value.
    """
    given = iter(keys)
    found: list[Any] = []
    for leaf in form.leaves:
        mine = [next(given) for _ in range(2 if leaf == "s" else 1)]
        found += () if leaf == "n" else mine
    return found[0] if len(found) == 1 else tuple(found)


@lru_cache(maxsize=512)
def _written(form: CallForm) -> Callable[..., Any] | None:
    text = _Text()
    try:
        taken = text.take(form.tree, form.leaves)
    except _Unwritten:
        return None
    hosted = "n" in form.leaves
    key = [k for x, leaf in zip(taken, form.leaves) for k in _KEYS[leaf](x)]
    bufs = [_BUFFERS[leaf](x) for x, leaf in zip(taken, form.leaves) if leaf != "s"]
    found = f"table[{', '.join(key) or '()'}]"
    if hosted:
        # The runtime takes numpy arrays under switches of the whole process, which jax changes when
        # it is imported: from then on such calls take the general path.
        text.lines += ["if 'jax' in modules: raise KeyError", f"run = {found}"]
        run = [f"r = run({', '.join(bufs)})"]
        after = _AFTER_HOSTED
    else:
        text.lines += [f"bufs = [{', '.join(bufs)}]", f"run, handlers, key, build = {found}"]
        run = ["outs = run(bufs).consume_with_handlers(handlers)"]
        after = _AFTER
    # One `except` covers both the checks of the arguments and the look-up.  A call of another form,
    # a deleted array (which has no `_buf`) and an unknown type are all misses, and `slow` finds out
    # which.  The run stands outside of it: otherwise an error in a user's callback would run the
    # call twice.  Buffers of donated arrays are removed only after the run, so that a call that
    # fails keeps them.
    lines = [
        "def make(table, slow, there):",
        *_indented(
            "def call(args, kwargs):",
            *_indented(
                "try:",
                *_indented(*text.lines),
                "except MISSES:",
                *_indented("return slow(args, kwargs)"),
                # No view of numpy may keep the program from writing to memory that it was given.
                *[
                    f"{x}._buf._npy_value = False"
                    for x, leaf in zip(taken, form.leaves)
                    if leaf in "do"
                ],
                "try:",
                *_indented(*run),
                "except RuntimeFailure as e:",
                *_indented("raise failure(e, %s) from None" % ("()" if hosted else "bufs")),
                *after,
                *[f"del {x}._buf" for x, leaf in zip(taken, form.leaves) if leaf == "d"],
                "return r",
            ),
            "return call",
        ),
    ]
    scope = {**_SCOPE, **text.constants}
    exec(compile("\n".join(lines), "<plait form of a call>", "exec"), scope)
    return scope["make"]


_KEYS: dict[str, Callable[[str], list[str]]] = {
    "a": lambda x: [f"{x}.key"],
    "d": lambda x: [f"{x}.key"],
    "v": lambda x: [f"{x}.key"],
    "o": lambda x: [f"{x}.key"],
    "p": lambda x: [f"{x}.key"],
    "s": lambda x: [f"{x}.__class__", x],
    "n": lambda x: [],
}
_BUFFERS: dict[str, Callable[[str], str]] = {
    "a": lambda x: f"{x}._buf",
    "d": lambda x: f"{x}._buf",
    "v": lambda x: f"{x}._buf",
    "o": lambda x: f"{x}._buf",
    "p": lambda x: f"{x}._buf",
    "n": lambda x: f"{x}.copy()",
}
_AFTER = (
    "if build is None:",
    "    r = A()",
    "    r._buf = outs[0]",
    "    r.aval = key.aval",
    "    r.key = key",
    "else:",
    "    r = build(outs)",
)
_AFTER_HOSTED = (
    "if r.__class__ is Buffer:",
    "    b = r",
    "    r = A()",
    "    r._buf = b",
    "    r.aval = r.key = b.aval",
)
_SCOPE: dict[str, Any] = {
    "A": Array,
    "Buffer": jaxlib_api.Buffer,
    "MISSES": Exception,  # comparisons of static values may raise any
    "RuntimeFailure": jaxlib_api.RuntimeFailure,
    "as_argument": as_argument,
    "as_donated": as_donated,
    "failure": failure,
    "freeze": freeze,
    "modules": sys.modules,  # once jax is imported, its settings apply to numpy arrays
    "ndarray": ndarray,
}


def _indented(*lines: str) -> list[str]:
    return ["    " + line for line in lines]


class _Text:
    """Lines that unpack a tree, and the objects that they refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.names = 0
        self.placed = 0
        self.depth = 0

    def name(self) -> str:
        self.names += 1
        if self.names > 2 * _MOST:
            raise _Unwritten
        return f"x{self.names - 1}"

    def constant(self, value: object) -> str:
        if value.__class__ in (str, int):
            return repr(value)
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def take(self, tree: TreeDef, leaves: str) -> list[str]:
        """Add the lines for (args, kwargs); return the names of its leaves."""
        if tree.num_leaves > _MOST:
            raise _Unwritten
        args, kwargs = tree.children()
        letters = iter(leaves)
        taken: list[str] = []
        self.sequence("args", args.children(), letters, taken)
        about = kwargs.node_data()
        assert about is not None  # it is a dict
        names = about[1]
        self.lines.append(f"if len(kwargs) != {len(names)}: raise KeyError" if names else
                          "if kwargs: raise KeyError")  # fmt: skip
        self.items("kwargs", names, kwargs.children(), letters, taken)
        return taken

    def node(self, x: str, tree: TreeDef, letters: Iterator[str], taken: list[str]) -> None:
        """Add the lines for the tree with the name `x`."""
        data = tree.node_data()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unwritten
        if data is None:
            self.leaf(x, next(letters), taken)
            self.depth -= 1
            return
        kind, about = data
        if kind is NoneType:
            self.lines.append(f"if {x} is not None: raise KeyError")
        elif kind in (tuple, list) or is_named_tuple(kind):
            self.lines.append(f"if {x}.__class__ is not {self.constant(kind)}: raise KeyError")
            self.sequence(x, tree.children(), letters, taken)
        elif kind is dict:
            self.lines.append(
                f"if {x}.__class__ is not {self.constant(dict)} or len({x}) != {len(about)}: "
                "raise KeyError"
            )
            self.expect_keys(x, about)
            self.items(x, about, tree.children(), letters, taken)
        else:
            raise _Unwritten
        self.depth -= 1

    def expect_keys(self, x: str, keys: Sequence[Any]) -> None:
        """Add the lines that refuse dictionary keys that equal these and differ: a look-up of 1
        also finds True and 1.0."""
        kinds = {k.__class__ for k in keys}
        if kinds <= {str}:
            return
        check = "k.__class__ is not int"
        if kinds != {int}:
            check = f"freeze(k) not in {self.constant(frozenset(map(freeze, keys)))}"
        self.lines += [f"for k in {x}:", *_indented(f"if {check}: raise KeyError")]

    def leaf(self, x: str, letter: str, taken: list[str]) -> None:
        if letter == "v":
            self.lines.append(f"if {x}.__class__ is not A: {x} = as_argument({x})")
        elif letter == "o":
            self.lines.append(f"if {x}.__class__ is not A: {x} = as_donated({x})")
        elif letter == "p":
            # An array placed elsewhere has another key, so the look-up in the table misses.
            self.lines.append(
                f"if {x}.__class__ is not A or {x}.key.placement is None: "
                f"{x} = there[{self.placed}]({x})"
            )
            self.placed += 1
        elif letter == "n":
            self.lines.append(
                f"if {x}.__class__ is not ndarray or {x}.nbytes > {HOSTED_BYTES} "
                f"or not {x}.dtype.isnative: raise KeyError"
            )
        taken.append(x)

    def sequence(
        self, x: str, children: Sequence[TreeDef], letters: Iterator[str], taken: list[str]
    ) -> None:
        names = [self.name() for _ in children]
        unpacked = ", ".join(names) + ("," if len(names) == 1 else "")
        self.lines.append(f"{unpacked or '()'} = {x}")
        for name, child in zip(names, children):
            self.node(name, child, letters, taken)

    def items(
        self,
        x: str,
        keys: Sequence[Any],
        children: Sequence[TreeDef],
        letters: Iterator[str],
        taken: list[str],
    ) -> None:
        for key, child in zip(keys, children):
            name = self.name()
            self.lines.append(f"{name} = {x}[{self.constant(key)}]")
            self.node(name, child, letters, taken)


# ---- results -------------------------------------------------------------------------------


def builder(
    tree: TreeDef, keys: list[Aval | Placed], one: Pattern = ()
) -> Callable[[list[Any]], Any]:
    """Return a function that makes the tree of results from buffers with these dispatch keys.

    `one` says which of its parts are the same object.
    """
    make = _assembled(tree) if exact_key(tree) is tree else None
    if make is not None:
        return make(*keys)
    if one:

        def build_as_one(outs: list[Any]) -> Any:
            leaves = [wrap(buf, key) for buf, key in zip(outs, keys)]
            return tree.unflatten(as_one(tree, one, leaves))

        return build_as_one

    def build(outs: list[Any]) -> Any:
        return tree.unflatten([wrap(buf, key) for buf, key in zip(outs, keys)])

    return build


@lru_cache(maxsize=512)
def _assembled(tree: TreeDef) -> Callable[..., Any] | None:
    n = tree.num_leaves
    if n > _MOST:
        return None
    constants: dict[str, Any] = {}
    names = iter([f"r{i}" for i in range(n)])
    try:
        result = _expression(tree, names, constants)
    except _Unwritten:
        return None
    lines = [
        f"def make({', '.join(f'k{i}' for i in range(n))}):",
        *[f"    a{i} = k{i}.aval" for i in range(n)],
        "    def build(outs):",
    ]
    for i in range(n):
        lines += _indented(
            *_indented(
                f"r{i} = A()", f"r{i}._buf = outs[{i}]", f"r{i}.aval = a{i}", f"r{i}.key = k{i}"
            )
        )
    lines += [f"        return {result}", "    return build"]
    scope = {"A": Array, **constants}
    exec(compile("\n".join(lines), "<plait form of results>", "exec"), scope)
    return scope["make"]


def _expression(
    tree: TreeDef, names: Iterator[str], constants: dict[str, Any], depth: int = 0
) -> str:
    """Return the tree as an expression in the names of its leaves."""
    if depth > _DEEPEST:
        raise _Unwritten
    data = tree.node_data()
    if data is None:
        return next(names)
    kind, about = data
    if kind is NoneType:
        return "None"
    parts = [_expression(c, names, constants, depth + 1) for c in tree.children()]
    if kind is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind is dict and all(k.__class__ is str for k in about):
        return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(about, parts)) + "}"
    if is_named_tuple(kind):
        name = f"c{len(constants)}"
        constants[name] = kind
        return f"{name}({', '.join(parts)})"
    raise _Unwritten
