"""References: their contents, where these are read and written, and where that is refused.

A reference belongs to the interpreter that is current where it is made, its home, and holds a value
of that interpreter.  If no stage lies between, it is read and written at once, whatever
transformation the value is under.  Nothing is recorded, and derivatives and mapped axes pass
through it as through any Python variable.  If a stage lies between, it captures the reference, and
records `state.get` and `state.set`.

Invariant: a reference holds a value of its home or of an interpreter further out; the type of the
value never changes.
"""

# pyright: reportPrivateUsage=false
# (functions outside of the class write the private fields)

from collections.abc import Iterator, Sequence
from typing import Any, cast

from plait.ext.errors import (
    ArgumentError,
    ConcretizationError,
    NoArray,
    OperandTypeError,
    PlaitError,
    ShapeError,
    here,
    user_line,
)
from plait.ext.ir import Var
from plait.ext.ops.collective import varied
from plait.ext.ops.shape import convert, materialise_at_ground
from plait.ext.trace import (
    GROUND,
    Carrier,
    Handle,
    Interpreter,
    Stage,
    Tracer,
    Value,
    admitted,
    current,
    escaped,
    is_above,
    lie_as,
    use,
)
from plait.ext.types import COMPLEX, Aval
from plait.ext.values import Array, as_value

from .discharge import applied
from .primitives import get_, set_
from .types import content_type, ref_type

__all__ = ["Ref", "closed", "made", "read_part", "write_part"]


class Ref(Handle):
    """A mutable array: `plait.new_ref` makes one.

    `ref[...]` is the array that it holds, `ref[index]` a part of it; `ref[index] = value` writes a
    part.  A jitted function, a loop or a branch may read and write references that it closes over.
    `jit`, `cond` and `vmap` (with in_axes=None) take them as arguments.  References are not
    arrays, and a transformed function cannot return one.

    >>> import plait
    >>> count = plait.new_ref(0)
    >>> @plait.jit
    ... def step(x):
    ...     count[...] += 1
    ...     return x * 2
    >>> float(step(1.0)), float(step(2.0)), int(count[...])
    (2.0, 4.0, 2)
    """

    __slots__ = ("_held", "_variable", "_frozen", "_lent")
    _held: Any
    _variable: Var | None
    _frozen: bool
    _lent: bool

    def __init__(self, *args: object, **kwargs: object):
        raise ArgumentError("Ref is made by plait.new_ref", fix="write plait.new_ref(value)")

    # -- attributes of the contents -----------------------------------------------------------

    @property
    def content_type(self) -> Aval:
        """The type of the contents."""
        return content_type(self.aval)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes of the contents."""
        return self.content_type.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the contents."""
        return self.content_type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the contents."""
        return self.content_type.ndim

    @property
    def size(self) -> Any:
        """The number of elements of the contents."""
        return self.content_type.size

    @property
    def weak_type(self) -> bool:
        """True if the dtype of the contents gives way to others."""
        return self.content_type.weak_type

    @property
    def sharding(self) -> Any:
        """The placement of the contents; raises NoArray while they are being traced."""
        return self._held_array("sharding").sharding

    @property
    def committed(self) -> bool:
        """True if the user placed the contents; raises NoArray while they are being traced."""
        return self._held_array("committed").committed

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the present contents; raise NoArray while they are being traced."""
        return self._held_array("unsafe_buffer_pointer").unsafe_buffer_pointer()

    def _held_array(self, name: str) -> Any:
        held = self.read()
        if isinstance(held, Array):
            return held
        raise NoArray(
            f".{name} of a reference, {self!r}, made at {user_line(self.where)}: what it holds is "
            "being traced, and has neither memory nor a place",
            fix="ask outside of the function that is transformed",
        )

    def __len__(self) -> int:
        if not self.ndim:
            raise ShapeError(
                "a reference to an array without axes has no len()", fix="read it: ref[...]"
            )
        return self.shape[0].__index__()

    def __repr__(self) -> str:
        if isinstance(self._held, Array):
            return "Ref" + repr(self._held).removeprefix("Array")
        return f"Ref<{self.content_type!r}>"

    def __getattr__(self, name: str) -> Any:
        # Python calls this also if one of our properties raised an AttributeError.  The property
        # is evaluated again here, so that the user sees its own error.
        if isinstance(own := vars(type(self)).get(name), property):
            return own.__get__(self)
        return super().__getattr__(name)

    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return self is other

    def __ne__(self, other: object) -> bool:  # type: ignore[override]
        return self is not other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise self.lost("bool()")

    def __int__(self) -> int:
        raise self.lost("int()")

    def __index__(self) -> int:
        raise self.lost("an index")

    # -- reading and writing ------------------------------------------------------------------

    def read(self) -> Any:
        """Return the array that it holds now."""
        stage = _recorder(self)
        if stage is None:
            return self._held
        with use(stage):
            return get_.bind(self)

    def write(self, value: object, does: str = "writing") -> None:
        """Replace the contents by an array of their type; messages name the action by `does`."""
        stage = _recorder(self)
        _expect_once(self, stage, does)
        value = _settled(self, value, stage or self.by)
        if stage is None:
            self._held = value
            return
        with use(stage):
            set_.bind(self, value)

    def addupdate(self, x: object, idx: object = ()) -> None:
        """Add to a part, or to all contents without an index."""
        write_part(self, idx if idx != () else None, x, "add", "adding to")

    def __getitem__(self, index: Any) -> Any:
        return read_part(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        write_part(self, index, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())

    def __copy__(self) -> "Ref":
        return made(self.read())

    def __deepcopy__(self, memo: object) -> "Ref":
        return made(self.read())

    def __reduce__(self) -> Any:
        return made, (self.read(),)

    # -- the interface for transformations ----------------------------------------------------

    def concrete(self) -> Any:
        raise self.lost("a Python number or branch")

    def lost(self, what: str) -> ConcretizationError:
        return ConcretizationError(
            f"{what} is asked of a reference, {self!r}", fix="read it first: ref[...]"
        )

    def refused(self, by: object) -> PlaitError:
        return OperandTypeError(
            f"{by} cannot be a reference: {self!r}, made at {user_line(self.where)}"
            if isinstance(by, str)
            else f"{by} takes no reference: {self!r}, made at {user_line(self.where)}",
            fix="give the array that it holds, ref[...]; what is written into a reference of "
            "outside stays in it",
        )

    def atom(self, stage: Interpreter) -> Any:
        if self._variable is not None and self.by is stage:
            return self._variable
        if self.by is stage:  # made under this stage: it is read and written at once, not recorded
            raise self.refused("the operand of an operation on arrays")
        return None

    def through(self, prim: object, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return applied(prim, args, params)

    def contents(self) -> Any:
        return self.read()

    def replace(self, value: object) -> None:
        self.write(value)

    def like(self, value: object) -> "Ref":
        ref = made(value)
        ref.where = self.where
        return ref

    def ended(self) -> Any:
        return closed(self)

    def lend(self, begin: bool) -> None:
        if begin and self._lent:
            raise ArgumentError(
                f"a reference is given twice, of which a function gets parts: {self!r}, made at "
                f"{user_line(self.where)}",
                fix="give it once, and use the one argument",
            )
        self._lent = begin


def _refusing(name: str) -> Any:
    """Return a member that raises an error for an operation of arrays."""

    def operator(self: Ref, *args: object) -> Any:
        raise OperandTypeError(
            f"{name} of a reference, {self!r}, which is not an array",
            fix="read it first: ref[...] is the array that it holds",
        )

    def member(self: Ref) -> Any:
        raise NoArray(
            f"a reference, {self!r}, has no .{name}", fix=f"read it first: ref[...].{name}"
        )

    return operator if name.startswith("__") else property(member)


_ASKED = ("__array_priority__", "__array_namespace__", "__slots__", "__annotations__", "receive")
"""Members of values that are not operations on them."""
for _name in vars(Value):
    if _name not in vars(Ref) and _name not in dir(object) and _name not in _ASKED:
        setattr(Ref, _name, _refusing(_name))


# ---- making ------------------------------------------------------------------------------------


def made(value: object) -> Ref:
    """Return a new reference that holds a value; its home is the current interpreter."""
    if isinstance(value, Ref):
        raise OperandTypeError(
            f"a reference cannot hold a reference: {value!r}",
            fix="read it first: plait.new_ref(ref[...])",
        )
    home = _home()
    with use(home):
        held = materialise_at_ground(admitted(value))
    ref = _bare(home, ref_type(held.aval))
    Handle.of_dtype.setdefault(ref.aval.dtype, _of_variable)
    ref._held = held
    return ref


def _bare(by: Interpreter, aval: Aval, where: object = None) -> Ref:
    ref = cast(Ref, object.__new__(Ref))
    ref.by, ref.aval, ref.where = by, aval, where or here()
    ref._held = ref._variable = None
    ref._frozen = ref._lent = False
    return ref


def _of_variable(v: Var) -> Ref:
    """Return the reference that a program receives for an input of such a type."""
    ref = _bare(v.by, v.aval, v.where)
    ref._variable = v
    return ref


def _home() -> Interpreter:
    """Return the interpreter whose values are made here.

    It skips current interpreters that have no values of their own (a block of settings).
    """
    by = current()
    while by.parent is not None and not isinstance(by, Stage | Carrier):
        by = by.parent
    return by if by.parent is not None or isinstance(by, Stage | Carrier) else GROUND


# ---- reading and writing -----------------------------------------------------------------------


def _recorder(ref: Ref) -> Stage | None:
    """Return the stage that records accesses to a reference here; None if they happen at once.

    Raises an error if the reference must not be used here.
    """
    if ref._frozen:
        raise ArgumentError(
            f"a reference was frozen, and is used again: it was made at {user_line(ref.where)}",
            fix="use what plait.freeze returned; freeze the reference last",
        )
    if ref._lent:
        raise ArgumentError(
            f"a reference is used while a function has its parts: it was made at "
            f"{user_line(ref.where)}",
            fix="use the argument of the function, which is a reference to its part",
        )
    if ref.by.closed:
        raise escaped(ref, "a reference's user", None)
    by: Interpreter | None = current()
    while by is not None and by is not ref.by:
        if isinstance(by, Stage) and by.staging:
            return by
        by = by.parent
    if by is None and ref.by is not GROUND:
        raise OperandTypeError(
            f"a reference of {ref.by.title()} is used outside of it: it was made at "
            f"{user_line(ref.where)}",
            fix="use it in the function that made it, or pass it as an argument",
        )
    return None if ref._variable is None else cast(Stage, ref.by)


def _expect_once(ref: Ref, stage: Stage | None, does: str) -> None:
    """Raise if this action would be repeated for many examples at once."""
    by: Interpreter | None = current()
    while by is not None and by is not ref.by and by is not stage:
        if by.copies:
            raise ArgumentError(
                f"{does} a reference of outside in {by.title()}: it holds one value, and there "
                f"would be one for each example; it was made at {user_line(ref.where)}",
                fix="return what is written, and write it outside; or make the reference inside",
            )
        by = by.parent


def _settled(ref: Ref, value: Any, home: Interpreter) -> Any:
    """Return a value to be written as one of the reference's type and home."""
    want = ref.content_type
    value = admitted(value)
    if isinstance(value, Ref):
        raise value.refused("what is written into a reference")
    if value.aval.shape != want.shape:
        raise ShapeError(
            f"an array of shape {value.aval.shape} is written into a reference to {want!r}",
            fix="write a part of it, ref[index] = value, or broadcast the value",
        )
    value = _of_dtype(value, want)
    while isinstance(value, Tracer) and not is_above(value.by, home):
        if value.by.closed:
            raise escaped(value, "a reference", None)
        outside = value.by.outside(value)
        if outside is value:
            raise ArgumentError(
                f"a value of {value.by.title()} is written into a reference of outside, which "
                f"would lose what that adds; the reference was made at {user_line(ref.where)}",
                fix="return the value (with has_aux=True) and write it outside, or write "
                "plait.lax.stop_gradient(value)",
            )
        value = outside
    with use(home):  # at the ground, a number becomes an array here
        return materialise_at_ground(value)


def _of_dtype(value: Value, want: Aval) -> Any:
    """Return a value in the dtype of the contents.

    Raises OperandTypeError unless it has that dtype, or is a Python number that gives way to it.
    """
    have = value.aval
    if have.dtype == want.dtype and have.weak_type == want.weak_type:
        return _lying(value, want)
    yields = have.weak_type and have.category <= want.category <= COMPLEX
    if have.dtype != want.dtype and not yields:
        raise OperandTypeError(
            f"{have!r} is written into a reference to {want!r}",
            fix=f'convert it: value.astype("{want.dtype.name}")',
        )
    return _lying(convert(value, want.dtype, want.weak_type), want)


def _lying(value: Value, want: Aval) -> Any:
    """Return a value that varies along mesh axes, and is divided over them, as the contents are.

    Raises OperandTypeError if it varies along other axes.
    """
    if not value.aval.vma <= want.vma:
        raise OperandTypeError(
            f"{value.aval!r}, which differs from device to device, is written into a reference to "
            f"{want!r}, which does not",
            fix="make the reference of a value that does: plait.new_ref(plait.lax.pvary(x, axes))",
        )
    if value.aval.vma != want.vma:
        value = varied(value, want.vma)
    return value if value.aval.division == want.division else lie_as(value, want.division)


def read_part(ref: Ref, index: object = None) -> Any:
    """Return the contents at an index; None or an Ellipsis selects all."""
    held = ref.read()
    return held if index is None or index is Ellipsis else held[_plain(index)]


def write_part(ref: Ref, index: object, value: Any, how: str = "set", does: str = "writing") -> Any:
    """Write a value at an index, or add it there, and return the previous value of that part."""
    before = held = ref.read()
    value = as_value(value)
    if index is not None and index is not Ellipsis:
        before = held[_plain(index)]
        if value.aval.shape != before.aval.shape:
            raise ShapeError(
                f"an array of shape {value.aval.shape} is written into a part, of shape "
                f"{before.aval.shape}, of a reference to {ref.content_type!r}",
                fix="broadcast the value to the shape of the part",
            )
        value = getattr(held.at[_plain(index)], how)(_of_dtype(value, held.aval))
    elif how == "add":
        value = held + _of_dtype(value, held.aval)
    ref.write(value, does)
    return before


def _plain(index: Any) -> Any:
    """Return an index after checking that it contains no reference."""
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, Ref):
            raise i.refused("an index")
    return index


def closed(ref: Ref) -> Any:
    """Return the contents of a reference, and make it unusable."""
    held = ref.read()
    if _recorder(ref) is not None:
        raise ArgumentError(
            f"a reference of outside is frozen in {current().title()}; it was made at "
            f"{user_line(ref.where)}",
            fix="read it, ref[...], or freeze it where it was made",
        )
    ref._frozen, ref._held = True, None
    return held
