"""Primitives: a name, a type rule, and traits.

    @primitive("core.reduce_sum", traits=(Linear, Reduction))
    def reduce_sum(x: Aval, *, axes: Ints) -> Aval:
        \"\"\"Sum over `axes`, which are dropped.\"\"\"
        return x.with_shape(...)

The signature is the schema: positional parameters are operands, keyword ones are static.

Invariant: a primitive is its type rule and holds no other behaviour.  Modules that give it a
meaning keep that in rule tables of their own.  Parameters are hashable; type rules are pure, hence
memoised.
"""

import inspect
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

from .._base import code_memory
from .._base.errors import DuplicateRule, PluginError, RegistrationError
from .._base.freezing import freeze_params
from .._plugins.metadata import FORMER_NAMES, declared, load
from .._plugins.rules import described
from .._plugins.traits import AnyElement, Indexing, Structural, Trait
from .._types.avals import OPAQUE, Aval, no_number
from .._types.dims import Dim
from . import divided, varying
from .array import as_value
from .handles import handle_among
from .higher_order import Wiring
from .interpreter import Value, current
from .ir import Effect

__all__ = ["Ints", "Primitive", "Sizes", "primitive", "registered", "textual_name"]

Ints = tuple[int, ...]
Sizes = tuple[int | Dim, ...]
_registered: "dict[str, Primitive]" = {}
_former: "dict[str, str]" = {}  # the name that a primitive had in an earlier release -> its name
_LOOSE = re.compile(r"\b(float|complex|Any|object|Callable|callable|tuple(?!\[))\b")


def registered(name: str) -> "Primitive | None":
    """Return the primitive of this name, as it was last defined; None if there is none.

    A name that no primitive has now may be one that a primitive had in an earlier release.  The
    modules that installed distributions declare for the name's namespace are imported if needed.

    Raises PluginError if there is none, and one of these modules cannot be imported.
    """
    failed: list[PluginError] = []
    if _brought(name, _registered, "plait.primitives", failed):
        return _registered[name]
    if _brought(name, _former, FORMER_NAMES, failed):
        return _registered[_former[name]]
    for error in failed:
        raise error
    return None


def _brought(name: str, held: Container[str], group: str, failed: list[PluginError]) -> bool:
    """Return whether a table has a name, importing the modules that may add it one by one."""
    for d in () if name in held else declared(group, name.rpartition(".")[0]):
        try:
            load(d)
        except PluginError as e:
            failed.append(e)
        if name in held:
            break
    return name in held


def textual_name(prim: "Primitive") -> str:
    """Return the name that a Program's text gives a primitive.

    A primitive that was defined again is written in angle brackets, so that no reader takes its
    name for the later definition, which may compute something else.
    """
    return prim.name if _registered.get(prim.name) is prim else f"<{prim.name}, since redefined>"


def primitives() -> "dict[str, Primitive]":
    """Return every primitive defined so far, by name."""
    return dict(_registered)


@code_memory.emptied_by
def _forget_compiled() -> None:
    """Drop what operations outside of jit have compiled."""
    for prim in list(_registered.values()):
        prim.compiled.clear()


class Primitive:
    """An operation that interpreters give meaning to.  Calling it applies it to operands.

    Args:
      name: `namespace.verb`.
      rule: types of operands -> type of the result (a list of them if `many`).
      traits: its promised properties, the most specific first.
      many: whether it has a list of results.
        prepare: converts the operands that users pass to those that the type rule takes.
      higher: its wiring, if it carries programs.
      ambient: params -> names of the axes it uses, which an interpreter around it must bind.
       vma: (axes of a mesh along which operands vary, params) -> those along which results vary, if
       these differ.
      effect: params -> its side effect (an Effect), or None.
      formerly: the names that it had in earlier releases.  Texts and artifacts with one of them are
       read as this primitive.  Rules that plugins declare for the namespace of one are found.

    Raises RegistrationError for a name without a namespace, a rule that is not callable, and an
    object in `traits` that is not a trait; DuplicateRule if another definition has this name, or
    one of the former names.
    """

    __slots__ = (
        "name", "namespace", "rule", "traits", "many", "prepare", "higher", "ambient", "effect",
        "vma", "memo", "compiled", "loose", "doc", "opaque", "formerly", "__weakref__",
    )  # fmt: skip
    name: str
    namespace: str
    rule: Callable[..., Any]
    traits: tuple[Trait, ...]
    many: bool
    prepare: Callable[[Any], Any] | None
    higher: Wiring | None
    ambient: Callable[[dict[str, Any]], Any] | None
    effect: Callable[[dict[str, Any]], Effect | None] | None
    vma: Callable[[varying.Vma, dict[str, Any]], varying.Vma] | None
    loose: tuple[str, ...] | None
    doc: str
    opaque: bool
    formerly: tuple[str, ...]

    def __init__(
        self,
        name: str,
        rule: Callable[..., Any],
        traits: Sequence[Trait] = (),
        many: bool = False,
        prepare: Callable[[Any], Any] | None = None,
        higher: Wiring | None = None,
        ambient: Callable[[dict[str, Any]], Any] | None = None,
        effect: Callable[[dict[str, Any]], Effect | None] | None = None,
        vma: Callable[[varying.Vma, dict[str, Any]], varying.Vma] | None = None,
        formerly: Sequence[str] = (),
    ):
        _claim(name, rule)
        self.formerly = _claim_former(name, rule, formerly)
        self.name, self.namespace = name, name.rpartition(".")[0]
        self.rule, self.traits, self.many = rule, tuple(traits), many
        for trait in self.traits:
            if trait.__class__ is not Trait:
                raise RegistrationError(
                    f"{trait!r} is not a trait of {name}", fix="the traits are in plait.ext.rules"
                )
        self.prepare, self.higher = prepare, higher
        self.ambient, self.effect, self.vma = ambient, effect, vma
        self.memo: dict[Any, Any] = {}
        self.compiled: dict[Any, Any] = {}  # of the execution layer
        self.loose = _loose_parameters(rule)
        self.doc = inspect.cleandoc(rule.__doc__ or "")
        self.opaque = not {Structural, Indexing, AnyElement}.isdisjoint(self.traits)
        _registered[name] = self
        _former.update(dict.fromkeys(self.formerly, name))

    def __repr__(self) -> str:
        return self.name

    def __copy__(self) -> "Primitive":
        return self

    def __deepcopy__(self, memo: object) -> "Primitive":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if _registered.get(self.name) is not self:
            raise RegistrationError(
                f"{self.name} was defined again, so its name no longer identifies this primitive",
                fix="trace the function again, which then uses the new definition",
            )
        return registered, (self.name,)

    def __call__(self, /, *args: Any, **params: object) -> Value:
        """Apply it to operands as users give them; return its result or results."""
        if self.prepare is not None:
            return current().apply(self, self.prepare(args), params)
        values = [a if isinstance(a, Value) else as_value(a) for a in args]
        if self.higher is not None:
            return self.bind(*values, **params)
        return current().apply(self, values, params)

    def bind(self, /, *args: Any, **params: object) -> Any:
        """Apply it to operands that the type rule takes as they are; return its result or
        results."""
        if self.higher is not None:
            handle = handle_among(args)
            if handle is not None:
                return handle.through(self, args, params)
        return current().apply(self, args, params)

    def infer(self, avals: tuple[Aval, ...], params: dict[str, Any]) -> Any:
        """Return the type of the result, or the types of the results."""
        # Not memoised: the memo lives as long as the primitive, and would keep the programs, or the
        # functions of callbacks, in its keys alive.
        if self.higher is not None or self.effect is not None:
            outs = self.rule(*avals, **params)
            outs = varying.of_programs(self.higher, avals, params, outs)
            for a in avals:
                if a.division is not None:
                    return divided.of_programs(self.higher, params, outs)
            return outs
        key = (avals, self.frozen(params)) if params else avals
        try:
            return self.memo[key]
        except KeyError:
            if not self.opaque:
                _only_numbers(self, avals)
            out = self.memo[key] = divided.of_result(self, avals, params)
            return out

    conformed = varying.conformed

    def frozen(self, params: dict[str, Any]) -> tuple[Any, ...]:
        """Return parameters as a key that distinguishes 1, 1.0 and True, 0.0 and -0.0."""
        if self.loose is None:
            return tuple(params.items())
        return freeze_params(params)


def _claim(name: str, rule: Callable[..., Any] | int) -> None:
    """Raise RegistrationError unless a primitive of this type rule may have this name.

    Rules and texts of Programs find a primitive by its name, so two definitions must not share one.
    Running the *same* definition again replaces the primitive: notebooks run cells twice, and
    modules are reloaded.
    """
    _expect_name(name)
    if not callable(rule):
        raise RegistrationError(
            f"the type rule of {name} must be callable, got {rule!r}",
            fix="give a function from the types of operands to the type of the result",
        )
    _refuse_second(_registered.get(name), name, rule, "name")


def _claim_former(name: str, rule: Callable[..., Any], formerly: Sequence[str]) -> tuple[str, ...]:
    """Return the former names of a primitive; raise RegistrationError unless it may have them."""
    if isinstance(formerly, str):
        raise RegistrationError(
            f"formerly= of {name} must be a tuple of names, got the text {formerly!r}",
            fix=f"write formerly=({formerly!r},)",
        )
    for former in formerly:
        _expect_name(former)
        _refuse_second(_registered.get(former), former, rule, "name")
        _refuse_second(_registered.get(_former.get(former, "")), former, rule, "former name")
    return tuple(formerly)


def _refuse_second(held: Primitive | None, name: str, rule: Callable[..., Any], what: str) -> None:
    """Raise DuplicateRule if a primitive of another definition has this name."""
    if held is not None and not _same_definition(held.rule, rule):
        first, second = _owner(held.rule), _owner(rule)
        raise DuplicateRule(
            f"two primitives have the {what} {name!r}: one of {first}, one of {second}",
            fix="give one of them another name, or another namespace",
        )


def _expect_name(name: Any) -> None:
    """Raise RegistrationError unless `name` is a namespace and a verb."""
    if not (name.__class__ is str and all(p.isidentifier() for p in name.split("."))):
        raise RegistrationError(
            f"{name!r} is not a name of a primitive", fix="write one like 'mine.verb'"
        )
    if "." not in name:
        raise RegistrationError(
            f"the primitive {name!r} has no namespace", fix=f"name it 'mine.{name}', say"
        )


def _same_definition(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """Return whether two type rules come from one definition, which ran twice.

    A function is identified by its module and qualified name, since its lines move when a reloaded
    module was edited. All lambdas of a module have one name, so of these the line counts too.
    """
    if any(getattr(first, k, None) != getattr(second, k, None) for k in _IDENTITY):
        return False
    if not getattr(first, "__qualname__", "<lambda>").endswith("<lambda>"):
        return True
    return getattr(first, "__code__", first) == getattr(second, "__code__", second)


_IDENTITY = ("__module__", "__qualname__")


def _owner(rule: Callable[..., Any]) -> str:
    """Return the distribution or module of a type rule, and the line that defines it."""
    owner = described(getattr(rule, "__module__", "?"))
    code = getattr(rule, "__code__", None)
    return owner if code is None else f"{owner} ({code.co_filename}:{code.co_firstlineno})"


def _only_numbers(prim: Primitive, avals: tuple[Aval, ...]) -> None:
    """Raise TypeRule if an operand has elements that are not numbers."""
    for a in avals:
        if a.category == OPAQUE:
            raise no_number(prim.name.rpartition(".")[2], a)


def primitive(name: str, **options: Any) -> Callable[[Callable[..., Any]], Primitive]:
    """Return a decorator that makes a primitive whose type rule is the function."""

    def make(rule: Callable[..., Any]) -> Primitive:
        return Primitive(name, rule, **options)

    return make


# ---- keys ----------------------------------------------------------------------------------


def _loose_parameters(rule: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the parameters whose annotation admits equal values of different types, or None.

    Freezing parameters costs more than the rest of a look-up.  Where all annotations are like
    `int` or `Ints`, no two values that are equal differ in meaning, and the parameters themselves
    are the key.
    """
    try:
        found = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return ("*",)
    loose: list[str] = []
    for p in found:
        if p.kind is p.VAR_KEYWORD:
            loose.append(p.name)
        elif p.kind is p.KEYWORD_ONLY:
            text = inspect.formatannotation(p.annotation)
            if p.annotation is p.empty or _LOOSE.search(text):
                loose.append(p.name)
    return tuple(loose) or None
