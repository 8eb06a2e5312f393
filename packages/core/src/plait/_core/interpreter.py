"""Interpreters: they give meaning to primitives, one application at a time.

Dispatch is by context: `prim.bind(...)` calls the current interpreter, which looks at the operands
it owns, and runs a rule under its parent.

Invariant: `interpreter.apply` may be called under any current interpreter and leaves it unchanged;
its rules run under the interpreter's parent.  A tracer belongs to exactly one interpreter.  Using
it after that interpreter is closed, or below the rules it serves, is an error that names the line
which made it.
"""

import copyreg
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsIndex

import numpy as np

from .._base.errors import (
    ArgumentError,
    ClosedOver,
    ConcretizationError,
    MissingRule,
    NoArray,
    PlaitError,
    UndecidedDim,
    UnexpectedTracerError,
)
from .._base.lazy import later
from .._base.source import Named, asked_by_us, here, user_line, where_defined
from .._base.tracebacks import leaving
from .._plugins.traits import Trait
from .._types.avals import Aval
from .._types.dims import Dim, refuse_ended
from .higher_order import Wiring

Params = dict[str, Any]
"""The static parameters of an operation, by name."""
Location = Any
"""A location token of `plait._base.source`: jaxlib's, and opaque; None if it is unknown."""


class Operation(Protocol):
    """The part of a primitive that interpreters use; see `plait._core.primitive.Primitive`."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def traits(self) -> tuple[Trait, ...]: ...
    @property
    def many(self) -> bool: ...
    @property
    def higher(self) -> Wiring | None: ...
    @property
    def ambient(self) -> Callable[[Params], Any] | None: ...
    @property
    def effect(self) -> Callable[[Params], Any] | None: ...
    @property
    def memo(self) -> dict[Any, Any]: ...
    def infer(self, avals: tuple[Aval, ...], params: Params) -> Any: ...
    def conformed(
        self, stage: Any, args: Sequence[Any], params: Params, outs: Any
    ) -> tuple[Sequence[Any], Params]: ...


if TYPE_CHECKING:
    from .array_type import Array as _Members  # a stub: it declares the members that values receive
else:
    _Members = object


class Value(_Members):
    """An operand of primitives: an array, a literal, or a traced value.

    Its operators and methods apply primitives, which are defined in terms of values: `receive` adds
    them to the class when the primitives exist.
    """

    __slots__ = ()
    __array_priority__ = 1000
    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes: a tuple of ints, or of symbolic sizes in exported programs."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements: a numpy dtype."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements: the product of the sizes of the axes."""
        return self.aval.size  # type: ignore[return-value]  # users compute with a Dim as with an int

    @property
    def weak_type(self) -> bool:
        """True if the dtype adapts to that of other operands, as a Python number's does."""
        return self.aval.weak_type

    def __len__(self) -> int:
        try:
            if not self.aval.ndim:
                raise TypeError("an array without axes has no len()")
            return self.aval.shape[0].__index__()
        except UndecidedDim as e:
            e.fix = "write x.shape[0] in place of len(x), which Python makes an int"
            leaving(e)
            raise
        except BaseException as e:
            leaving(e)
            raise

    @classmethod
    def receive(cls, members: Mapping[str, Any]) -> None:
        """Give all values these operators, methods and properties."""
        for name, member in members.items():
            setattr(cls, name, member)


class Interpreter:
    """Base of the objects that give primitives a meaning: subclasses define `apply`."""

    parent: "Interpreter | None" = None
    beside: "Interpreter | None" = None
    """A stage that records the operations deferred here; its values are valid here too."""
    closed: bool = False
    depth: int = 0
    thread: int = 0
    staging: bool = False
    """True if applied operations end in a Program, here or in an interpreter further out."""
    fixed_boxes: bool = False
    """True if boxes at known positions are read by `slice`, as in staged programs.  Otherwise their
    positions are operands, so that boxes of one size share an executable."""
    at_once: bool = False
    """True if applied operations run at once, and users see arrays, as on the ground."""
    keeps_fused: bool = False
    """True if Plait's own functions that are `fused` into one program are applied as one operation,
    so that users do not see the operations inside."""
    sizes: ClassVar[dict[Any, Any]] = {}
    """The sizes of the named axes that it binds."""
    typed_axes: frozenset[Any] = frozenset()
    """The named axes that it binds for which types record whether a value varies along them
    (`Aval.vma`)."""
    lacks_elements: bool = False
    """True if some elements of its map may be missing, so that a collective inside of it counts
    those that are there."""
    copies: bool = False
    """True if one application of an operation serves many examples: an effect on something outside
    would happen once instead of once for each example."""

    does: str = "evaluate"
    """The name of the transformation, as users know it."""
    of: Callable[..., Any] | None = None
    """The function it transforms."""
    maps: "tuple[Interpreter, ...]" = ()
    """The interpreters around it, and itself, that name sizes, outermost first."""
    sizes_read: dict[str, Dim]
    """For an interpreter that names sizes, those that users have read."""

    @property
    def kind(self) -> type["Interpreter"]:
        """The class that its tracers show: its own, unless it stands for another interpreter."""
        return type(self)

    def apply(self, prim: Any, args: Sequence[Any], params: Params) -> Any:
        """Apply a primitive; return its result, or a list of results if `prim.many`."""
        raise MissingRule(
            f"{type(self).__name__} does not say what applying {prim} means",
            fix="give it a method apply(self, prim, args, params)",
        )

    def joins(self, name: str) -> Hashable:
        """Return the object that a named axis of this interpreter is an axis of, if one collective
        can run along several axes of that object; None if each axis is bound alone."""
        return None

    def names_size(self, name: str) -> bool:
        """Return whether this interpreter, one of the `maps`, gave a size its name."""
        return False

    def outside(self, x: "Tracer") -> Any:
        """Return the value that `x` stands for outside of this interpreter; `x` itself if it
        carries what the transformation adds."""
        return x

    @property
    def observed(self) -> "Interpreter | None":
        """The interpreter whose results this one inspects without changing them; None for all
        others."""
        return None

    def executed(self, run: Callable[[], Any], program: Any, args: Callable[[], Any]) -> Any:
        """Return `run()`, which runs a compiled program; an interpreter that inspects results
        inspects them here, too.

        `args()` are the operands of `program`."""
        return run()

    def observing(self, inner: "Interpreter") -> "Interpreter":
        """Return the interpreter that inspects results of `inner`, opened over `observed`."""
        return inner

    @property
    def recorders(self) -> tuple[Any, ...]:
        """The stages that record the operations applied here, innermost first.

        Equations get a stage's source line `where`, unless that is None.
        """
        above = self.parent.recorders if self.parent is not None else ()
        return above if self.beside is None else (*self.beside.recorders, *above)

    def concrete(self, x: "Tracer") -> Any:
        """Return the value of a tracer of this interpreter, for branching and indexing only."""
        raise later("_core.questions").unknown_value(x, self.title())

    def title(self) -> str:
        """Return the name of the transformation, and of the function it transforms."""
        return self.does if self.of is None else f"{self.does} of {where_defined(self.of)}"


def missing_attribute(x: Value, name: str) -> Any:
    """Raise the error for an attribute that a value lacks; `__getattr__` of arrays and tracers.

    Literals have no such method: eager calls ask them for attributes of arrays, and go on without.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if any(name in vars(c) for c in type(x).__mro__):
        # A property of the class raised an AttributeError of its own, which is raised again.
        return object.__getattribute__(x, name)
    raise later("_base.spelling").missing_method(x, name)


class Tracer(Value):
    """A value that is traced: what a transformed function computes with instead of an Array.

    Attributes:
      by: the interpreter to which it belongs.
      where: the line of the user's file that made it.
    """

    __slots__ = ("by", "aval", "where", "__weakref__")
    by: Interpreter
    where: Location
    __hash__ = object.__hash__  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes: a tuple of ints, or of symbolic sizes."""
        shape = self.aval.shape
        if self.by.maps and self.aval.dims and not asked_by_us(_getframe(1)):
            return tuple([self._owned(d) if d.__class__ is Dim else d for d in shape])
        return shape

    @property
    def size(self) -> Any:
        """The number of elements: the product of the sizes of the axes."""
        size = self.aval.size
        if self.by.maps and size.__class__ is Dim and not asked_by_us(_getframe(1)):
            return self._owned(size)
        return size

    def _owned(self, d: Any) -> Any:
        """Return a size as users read it: it belongs to the maps that named it.

        Within a map, equal sizes are one object.
        """
        maps = [m for m in self.by.maps if any(map(m.names_size, d.variables))]
        if not maps:
            return d
        key = repr(d)
        found = maps[-1].sizes_read.get(key)
        if found is None:
            found = d.owned(*[(m, self.where) for m in maps])
            if not maps[-1].closed:
                maps[-1].sizes_read[key] = found
        return found

    def __repr__(self) -> str:
        return f"<{self.by.kind.__name__} {self.aval!r}>"

    def concrete(self) -> Any:
        """Return the value with known elements that it stands for now.

        Raises ConcretizationError if the elements are not known (under jit), and
        UnexpectedTracerError after its transformation has ended.
        """
        if self.by.closed:
            raise escaped(self, "Python", None)
        return self.by.concrete(self)

    def __bool__(self) -> bool:
        size = self.aval.size
        if size.__class__ is int and size != 1 and not self.by.closed:
            raise ArgumentError(
                f"an array of {size} elements, {self.aval!r}, has no truth value",
                fix="write x.any() or x.all()",
            )
        return bool(self.concrete())

    def __int__(self) -> int:
        return int(self.concrete())

    def __index__(self) -> int:
        if not self.by.closed and (self.aval.ndim or self.aval.dtype.kind not in "iu"):
            value = self.concrete()  # the error for values that are not known comes first
            if not hasattr(value, "variables"):
                raise later("_core.questions").not_an_integer(self)
        return self.concrete().__index__()

    def __float__(self) -> float:
        return float(self.plain("float()"))

    def __complex__(self) -> complex:
        return complex(self.plain("complex()"))

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self.plain("numpy.asarray()").__array__(dtype, copy)

    def __format__(self, spec: str) -> str:
        return format(self.plain("a format"), spec) if spec else str(self)

    def item(self, *index: SupportsIndex) -> Any:
        """Return the element as a Python scalar if this is `plain`."""
        return self.plain(".item()").numpy().item(*index)

    def tolist(self) -> Any:
        """Return the elements as Python scalars in nested lists if this is `plain`."""
        return self.plain(".tolist()").numpy().tolist()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ARRAYS:
            raise NoArray(
                f".{name} of {self!r}, made at {user_line(self.where)}: it is being traced, and "
                "has neither memory nor a place",
                fix="ask the array that the transformed function was given, or returns",
            )
        return missing_attribute(self, name)

    def tobytes(self, order: str = "C") -> Any:
        """Return the bytes of the elements if this is `plain`."""
        return self.plain(".tobytes()").numpy().tobytes(order)

    def __buffer__(self, flags: int) -> Any:
        return memoryview(self.plain("memoryview()").numpy())

    def plain(self, what: str) -> Any:
        """Return the array that this stands for, if it does not depend on anything that is
        transformed.

        Raises the error of `lost`, with the operation `what`, for any other value.
        """
        if not self.by.closed:
            value = self.by.outside(self)
            if not isinstance(value, Tracer):
                return value
        raise self.lost(what)

    def lost(self, what: str) -> ConcretizationError | UnexpectedTracerError:
        """Return the error for taking the value out of its transformation, by the operation `what`.

        Branching on a value is harmless, so `bool`, `int` and indexing are allowed where it is
        known. Computing with it outside of Plait (`numpy.sin(float(x))`) would silently drop the
        components that the transformation carries along: a gradient would be 0."""
        if self.by.closed:
            return escaped(self, what, None)
        return later("_core.questions").taken_out(what, self, self.by.title())

    def __reduce__(self) -> tuple[object, ...]:
        raise self.lost("pickling")

    def __copy__(self) -> "Tracer":
        return self  # as arrays, it is immutable

    def __deepcopy__(self, memo: object) -> "Tracer":
        return self


_OF_ARRAYS = {
    "addressable_data", "addressable_shards", "block_until_ready", "committed", "delete",
    "copy_to_host_async", "device_buffers", "devices", "global_shards",
    "is_deleted", "is_fully_addressable", "is_fully_replicated", "is_ready", "numpy",
    "on_device_size_in_bytes", "sharding", "unsafe_buffer_pointer",
}  # fmt: skip
"""Attributes that only arrays have."""


class Evaluate(Interpreter):
    """The ground, current where no transformation is under way: it applies primitives at once.

    A higher layer executes them, and calls `GROUND.execute_with`.  It also plans calls of functions
    of arrays (`plait._core.dispatch`).

    Attributes:
      number: returns the buffer of a Python number; OverflowError if it is too large.
      plan: returns the plan of calls of a function with such arguments.
    """

    number: Callable[[Any], Any]
    plan: Callable[..., Any]

    at_once = True

    def apply(self, prim: Any, args: Sequence[Any], params: Params) -> Any:
        return GROUND.apply(prim, args, params)

    def execute_with(self, executor: Callable[[Any, Any, Params], Any]) -> None:
        """Apply primitives by calling `executor(prim, args, params)`."""
        self.apply = executor  # type: ignore[method-assign]  # on the instance, to bind nothing

    def plan_with(self, number: Callable[[Any], Any], plan: Callable[..., Any]) -> None:
        """Plan calls of functions of arrays with these functions; see the attributes."""
        self.number, self.plan = number, plan

    def __reduce__(self) -> str:
        return "GROUND"


GROUND = Evaluate()
_current: ContextVar[Interpreter] = ContextVar("plait._core.interpreter", default=GROUND)
_entered: "ContextVar[_Entry | None]" = ContextVar("plait.entered", default=None)


def _pickled(variable: ContextVar[Any]) -> tuple[Any, ...]:
    """Reduce a context variable of this module to its name; others cannot be pickled.

    Cloudpickle pickles transformed functions by their contents, which include `current`, a method
    of such a variable."""
    for name, own in (("_current", _current), ("_entered", _entered)):
        if variable is own:
            return _unpickled, (name,)
    raise TypeError("cannot pickle '_contextvars.ContextVar' object")


def _unpickled(name: str) -> ContextVar[Any]:
    return {"_current": _current, "_entered": _entered}[name]


copyreg.pickle(ContextVar, _pickled)
current: Callable[[], Interpreter] = _current.get
enter = _current.set
leave = _current.reset


# Every rule and every stage opens such a block, so blocks are classes: a generator takes nine calls
# of Python where a class takes three.


def use(interpreter: Interpreter) -> "_Entry":
    """Make an interpreter current for a `with` block."""
    return _Entry(interpreter)


def opened(interpreter: Interpreter) -> "_Entry":
    """Make an interpreter current for a `with` block, then close it: its tracers are invalid
    after."""
    return _Opened(interpreter)


class _Entry:
    """An interpreter that is entered, and the entry before it."""

    __slots__ = ("below", "interpreter", "tokens")
    below: "_Entry | None"
    interpreter: Interpreter
    tokens: tuple[Any, Any]

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter

    def __enter__(self) -> Interpreter:
        self.below = _entered.get()
        self.tokens = enter(self.interpreter), _entered.set(self)
        return self.interpreter

    def __exit__(self, *_: object) -> None:
        """Make the interpreter before it current; raise PlaitError if another one is current now.

        A generator that is suspended inside of `use(...)` may be collected much later, during
        something else.  Restoring the interpreter of *then* would leave a dead interpreter current
        for good.  So nothing changes unless this entry is still among those that are entered.
        """
        top = _entered.get()
        in_order = top is self and current() is self.interpreter
        inner = top.below if top is not None else None
        while inner is not None and inner is not self:
            inner = inner.below
        if in_order or inner is self:
            leave(self.tokens[0])
            _entered.reset(self.tokens[1])
        if not in_order:
            raise PlaitError(
                f"the interpreter of {self.interpreter.title()} is left while another is current",
                fix="do not suspend a generator inside plait.ext.use(...)",
            )


class _Opened(_Entry):
    __slots__ = ()

    def __exit__(self, *_: object) -> None:
        self.interpreter.closed = True
        _Entry.__exit__(self)


def open_under(interpreter: Interpreter, parent: Interpreter | None) -> None:
    """Give a new interpreter its parent, and the depth, thread and staging that follow from it."""
    interpreter.parent = parent
    interpreter.depth = parent.depth + 1 if parent is not None else 1
    interpreter.staging = parent is not None and parent.staging
    if parent is not None and parent.fixed_boxes:
        interpreter.fixed_boxes = True
    interpreter.maps = () if parent is None else parent.maps
    interpreter.thread = get_ident()


def with_lines() -> "_Lines":
    """Give the recorders of the current interpreter for a block that sets their `where`, and
    restore it at the end."""
    return _Lines()


class _Lines:
    __slots__ = ("before", "recorders")
    before: list[Any]
    recorders: Any

    def __enter__(self) -> tuple[Any, ...]:
        recorders: Any = current().recorders
        self.recorders, self.before = recorders, [p.where for p in recorders]
        return recorders

    def __exit__(self, *_: object) -> None:
        for p, where in zip(self.recorders, self.before):
            p.where = where


@contextmanager
def naming(name: str) -> Generator[None, None, None]:
    """Put a name before the source locations of equations recorded in a `with` block.

    The locations of a lowered program show the names, outermost first and with slashes between
    them.  They are set at the end of the block, all at once, so that applying an operation costs
    nothing more.
    """
    stages = [s for s in current().recorders if hasattr(s, "eqns")]
    before = [len(s.eqns) for s in stages]
    yield
    for s, n in zip(stages, before):
        for e in s.eqns[n:]:
            inner = e.where.__class__ is Named
            e.where = Named(f"{name}/{e.where.name}", e.where.at) if inner else Named(name, e.where)


# ---- tracers where they do not belong ------------------------------------------------------


def escaped(x: Tracer, user: str, where: Location) -> UnexpectedTracerError:
    """Return the error for using a tracer after its interpreter has ended."""
    return UnexpectedTracerError(
        f"{user} was given {x!r}, which outlived {x.by.title()}.\n"
        f"  It was created on line {user_line(x.where)}, while the function being traced was "
        f"{x.by.title()}",
        where=where if where is not None else here(),
        fix="return it from the transformed function instead of keeping it elsewhere",
    )


def inverted(x: Tracer, user: str, by: str) -> UnexpectedTracerError:
    """Return the error for a tracer that is used below the interpreter it belongs to."""
    return UnexpectedTracerError(
        f"{user} was given {x!r} below {x.by.title()}, in {by}.\n"
        f"  It was created on line {user_line(x.where)}; a rule or function closes over a value "
        "of the transformation that it serves",
        fix="pass it as an argument",
    )


def enclosed(x: Value, function: str, how: str) -> ClosedOver:
    """Return the error for a function with a rule that closes over a value that is being
    transformed: the rule would drop it.

    Args:
      function: names the function.
      how: a participle, such as "differentiated".
    """
    return ClosedOver(
        f"{function} closes over a value that is being {how}, {x!r}, and its rule is for its "
        f"arguments alone.\n  It was created on line {user_line(getattr(x, 'where', None))}",
        fix="pass that value as an argument of the function, and let the rule take it",
    )


def stray(prim: object, args: Iterable[Any], by: Interpreter) -> Interpreter:
    """Return the interpreter to apply an operation in, after `by` received a tracer it does not
    own.

    That is the tracer's own interpreter, if it is open and of another thread: a thread that was
    started within a transformation begins at the ground.  In the same thread it is an error: a rule
    closes over a value of the level that it serves.  Sending that value back up would give a result
    that looks right and has lost its derivative.
    """
    found = [a for a in args if isinstance(a, Tracer) and a.by is not by]
    x = max(found, key=lambda a: a.by.depth)
    if x.by.closed:
        raise escaped(x, repr(prim), None)
    if x.by.thread == get_ident():
        raise inverted(x, repr(prim), by.title())
    return x.by


def admitted_sizes(x: Any) -> Any:
    """Return a user's size, or a tuple of anything, with the owners of sizes removed.

    Raises UnexpectedTracerError for the size of a map that has ended.
    """
    if x.__class__ is Dim and x.owners:
        refuse_ended(x, x.owners, current().maps)
        return x.owned()
    if x.__class__ is tuple:
        for d in x:
            if d.__class__ is tuple or (d.__class__ is Dim and d.owners):
                return tuple([admitted_sizes(d) for d in x])
    return x


def is_above(by: Interpreter, start: Interpreter | None) -> bool:
    """Return whether values of `by` may be used under `start`: it is `start`, an ancestor of it, or
    the stage that one of these records in."""
    while start is not None:
        if start is by or start.beside is by:
            return True
        start = start.parent
    return False


def as_list(out: object) -> list[Any]:
    """Return the results of a rule as a list: a single value becomes a list of one."""
    return [*out] if isinstance(out, tuple | list) else [out]  # type: ignore[misc]


def add_members(cls: type, members: Mapping[str, Any]) -> None:
    """Give all instances of a class of the core these properties and methods.

    The class may be that of arrays, tracers, types, programs, equations or stages.  Adding the same
    members again does nothing.  `__module__` may be among them: libraries choose their functions by
    the module of a value's class.

    Raises ArgumentError for a name that the class has.

    >>> import plait
    >>> add_members(plait.Array, {"twice": property(lambda x: x * 2)})
    >>> plait.numpy.ones(2).twice.tolist()
    [2.0, 2.0]
    >>> del plait.Array.twice
    """
    for name, member in members.items():
        if name != "__module__" and getattr(cls, name, member) is not member:
            raise ArgumentError(
                f"{cls.__name__} has an attribute {name!r} already",
                fix="choose another name: members of the core are not replaced",
            )
    for name, member in members.items():
        setattr(cls, name, member)
