"""Rule tables: the rules of a transformation for each primitive.

A table is one column of the matrix primitive x transformation.  It returns the primitive's own
rule, else that of its first trait that has one, else None.

Invariant: a table answers about a namespace (of a primitive, or of one of its traits) only after
all installed modules with rules for that (table, namespace) were imported.  So the order of imports
cannot change an answer.  If such a module of the owner of the table or of the primitive cannot be
imported, the answer is an error, never a trait's guess.  Rule modules register rules, and never
look rules up while they are imported.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, TracebackType
from typing import Any, Protocol

from .._base.config import config
from .._base.errors import (
    DuplicateRule,
    MissingRule,
    PlaitError,
    PluginError,
    PluginWarning,
    RegistrationError,
)
from .._base.source import warn
from .metadata import (
    TABLES,
    Declared,
    admitted,
    declared,
    distribution_of,
    install_command,
    installed,
    left_out,
    load,
    loading,
    owns,
)
from .traits import Trait

_loading: "set[tuple[str, str]]" = set()  # (table, namespace) whose modules are being imported
_tables: "dict[str, RuleTable]" = {}
_VARARGS, _VARKEYWORDS = 0x04, 0x08  # flags of a code object that takes *args, **kwargs


class Keyed(Protocol):
    """The part of a primitive that a table uses."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def traits(self) -> tuple[Trait, ...]: ...


Rule = Callable[..., Any]


class Signature:
    """The signature of a table's rules, like `(xs, ts, **params)` or `(ct, *args, **params)`.

    `*args` stands for one argument per operand, `**params` for the parameters by keyword.
    """

    fixed: list[str]
    operands: bool
    params: bool

    def __init__(self, text: str):
        names = [n.strip() for n in text.strip("()").split(",") if n.strip()]
        self.text = text
        self.fixed = [n for n in names if not n.startswith("*")]
        self.operands = any(n.startswith("*") and not n.startswith("**") for n in names)
        self.params = any(n.startswith("**") for n in names)

    def objection(self, code: CodeType, prim: object) -> str | None:
        """Return the objection to a function of this code as a rule for `prim` (a primitive or a
        trait); None if it can be called."""
        first = isinstance(prim, Trait)  # a trait's rule receives the primitive, too
        given = ["prim", *self.fixed] if first else self.fixed
        rule = None if first else getattr(getattr(prim, "rule", None), "__code__", None)
        count = len(given)
        if self.operands and rule is not None and not rule.co_flags & _VARARGS:
            count += rule.co_argcount
        exact = not self.operands or (rule is not None and not rule.co_flags & _VARARGS)
        if code.co_argcount < count and not code.co_flags & _VARARGS:
            return f"takes {code.co_argcount} positional arguments, and is given {count} or more"
        if not self.params or rule is None or rule.co_flags & _VARKEYWORDS or not exact:
            return None
        keywords = rule.co_varnames[rule.co_argcount :][: rule.co_kwonlyargcount]
        named, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        free = code.co_varnames[min(count, named) : last]
        for name in keywords:
            if name not in free and not code.co_flags & _VARKEYWORDS:
                return f"does not take the parameter {name!r}"
        return None

    def demand(self, fn: Callable[..., Any], prim: Any) -> str | None:
        """Return the objection to a rule that needs a parameter the primitive does not have."""
        rule = getattr(getattr(prim, "rule", None), "__code__", None)
        if not self.params or rule is None or rule.co_flags & _VARKEYWORDS:
            return None
        code = fn.__code__
        only = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        keywords = rule.co_varnames[rule.co_argcount :][: rule.co_kwonlyargcount]
        for name in only:
            if name not in keywords and name not in (fn.__kwdefaults__ or ()):
                return f"needs a parameter {name!r}, which {prim.name} does not have"
        return None


class RuleTable:
    """A table of rules.

    Args:
        name: the name of the table; installed modules declare rules for it in the entry-point group
          `plait.rules.<name>`.
        owns: namespaces whose rules come with their definitions.
        doc: what a rule returns.
        signature: the arguments of rules, like `(xs, ts, **params)`; registered rules are checked
          against it.
        programs: the signature for primitives that hold programs, if it differs.
        base: a table that answers if this one has no rule, neither for the primitive nor for one of
          its traits.
        default: the rule of all other primitives without programs that `expand` cannot rewrite.  It
          receives the primitive first, as rules of traits do.
        fallback: a table, or the name of one.  `default` is then the rule of the primitives that
          have a rule there, and receives the primitive, that rule, and the arguments.

    Raises DuplicateRule if another module has made a table of this name.

    Example:
      >>> from plait import ext
      >>> colour_rules = ext.RuleTable("colour", signature="(x)", doc="the colour of the result")
    """

    signature: Signature | None
    programs: Signature | None
    group: str
    own_namespaces: frozenset[str]
    base: "RuleTable | None"
    default: Rule | None

    def __init__(
        self,
        name: str,
        owns: tuple[str, ...] = (),
        doc: str = "",
        signature: str = "",
        programs: str = "",
        base: "RuleTable | None" = None,
        default: Rule | None = None,
        fallback: "RuleTable | str | None" = None,
    ):
        if fallback is not None and default is None:
            raise RegistrationError(
                f"the table {name!r} has a fallback and no default, which would use its rules",
                fix="write default=f, which is called as f(prim, rule of the fallback, ...)",
            )
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the table's module
        self.owner: str = frame.f_globals.get("__name__", "?")
        held = _tables.get(name)
        if held is not None and held.owner != self.owner:
            raise DuplicateRule(
                f"two rule tables {name!r}: of {described(held.owner)} and of "
                f"{described(self.owner)}",
                fix="give one of them another name",
            )
        self.name = name
        self.signature = Signature(signature) if signature else None
        self.programs = Signature(programs) if programs else None
        said = f"rule{signature} -> " if signature else ""
        of = f"  Of an operation with programs: rule{programs}." if programs else ""
        self.__doc__ = said + doc + of
        self.group = f"plait.rules.{name}"
        self.own_namespaces = frozenset(owns)
        self._rules: dict[Any, Rule] = {}
        self._overridden: set[Any] = set()
        self._loaded: set[str] = set(owns)
        self._clashes: dict[Any, tuple[Rule, Rule]] = {}
        self._failed: dict[str, list[PluginError]] = {}
        self._unheard: dict[str, PluginError] = {}  # namespace -> why its owner is not loaded
        self._found: dict[Any, Rule | None] = {}  # memo of `find`, cleared at registrations
        self.base, self.default, self.fallback = base, default, fallback
        self._above: list[RuleTable] = []  # tables whose base this one is
        for below in (base, fallback):
            if isinstance(below, RuleTable):
                below._above.append(self)
        _tables[name] = self

    def __repr__(self) -> str:
        return f"<rules {self.name}>"

    def rule(self, *keys: Keyed | Trait, override: bool = False) -> Callable[[Rule], Rule]:
        """Decorate a function that becomes this table's rule for primitives or traits.

        Raises RegistrationError for any other key, and for a function that cannot be called with
        the table's signature; DuplicateRule for a second rule.
        """

        def register(fn: Rule) -> Rule:
            for key in keys:
                self._validate(key, fn)
                if not override and key in self._overridden:
                    continue
                held = self._rules.get(key) if not override or key in self._overridden else None
                if held is not None and not again(held, fn):
                    self._refuse(key, held, fn)
                    continue
                if override:
                    self._overridden.add(key)
                    self._clashes.pop(key, None)
                self._rules[key] = fn
            self._forget()
            return fn

        return register

    def _forget(self) -> None:
        """Clear the memo after a registration, here and in tables above this one."""
        self._found.clear()
        for table in self._above:
            table._forget()

    def _validate(self, key: object, fn: Callable[..., Any]) -> None:
        """Raise RegistrationError unless `fn` can be the rule for `key`."""
        if not (isinstance(key, Trait) or (hasattr(key, "traits") and hasattr(key, "namespace"))):
            known = [str(k) for k in self._rules if str(k) == key]
            raise RegistrationError(
                f"{key!r} is not a key of {self.name!r} rules: keys are primitives and traits",
                fix=f"give the {'primitive itself' if known else 'primitive or trait'}, not its "
                "name: plait.ext.ops has those of core, by family",
            )
        if not callable(fn):
            raise RegistrationError(
                f"the {self.name!r} rule for {key} is {fn!r}, which cannot be called",
                fix="register a function",
            )
        signature = self.signature
        if getattr(key, "higher", None) is not None:
            signature = self.programs
        code = getattr(fn, "__code__", None)
        if signature is None or code is None:
            return
        wrong = signature.objection(code, key) or signature.demand(fn, key)
        if wrong is not None:
            raise RegistrationError(
                f"the {self.name!r} rule for {key}, {origin(fn)}, {wrong}",
                fix=f"rules of this table are called as rule{signature.text}"
                + (", after the primitive" if isinstance(key, Trait) else ""),
            )

    def misapplied(self, prim: Keyed, rule: Rule, error: TypeError) -> RegistrationError | None:
        """Return the error to raise instead of a TypeError that the rule's own code did not cause.

        Either the call failed before the rule began (other arguments), or its result has another
        form than results of such rules.  None if the error was raised inside of the rule.
        """
        fn: Any = rule.func if isinstance(rule, partial) else rule
        code, at = getattr(fn, "__code__", None), error.__traceback__
        if isinstance(error, PlaitError) or code is None or _entered(code, at):
            return None
        called = self.signature if getattr(prim, "higher", None) is None else self.programs
        like = f"called as rule{called.text}, and returns: " if called is not None else ""
        return RegistrationError(
            f"the {self.name!r} rule for {prim}, {origin(fn)}, does not fit: {error}",
            fix=f"mend it; it is {like}{self.__doc__}",
        )

    def _refuse(self, key: Keyed | Trait, held: Rule, fn: Rule) -> None:
        """Refuse a second rule for one cell.

        While plugins are being imported, the error is deferred until the cell is looked up.  The
        module being imported may not be at fault, and its other rules are needed.
        """
        if not _loading:
            raise self._duplicate(key, held, fn)
        self._clashes[key] = held, fn
        self._forget()

    def _duplicate(self, key: Keyed | Trait, held: Rule, fn: Rule) -> DuplicateRule:
        return DuplicateRule(
            f"two {self.name!r} rules for {key}: {origin(held)} and {origin(fn)}",
            fix="leave one of them out, or pass override=True to replace the first",
        )

    def find(self, prim: Keyed) -> Rule | None:
        """Return the most specific rule, or None.

        Raises DuplicateRule if two installed modules gave one for this primitive, PluginError if
        its own rule may be in a module that could not be loaded.
        """
        try:
            return self._found[prim]
        except KeyError:
            pass
        self._load_all(prim)
        rule = self._unique(prim)
        if rule is None:
            # A trait's rule would be a guess while the owner's rules are unknown.  A function that
            # is linear except for its derivative at one point, say, must not get slope 1 there.
            for namespace in _namespaces(prim):
                if namespace in self._unheard:
                    raise self._unheard[namespace]
            rule = self._of_traits(prim)
        if rule is None and self.base is not None:
            rule = self.base.find(prim)
        if rule is None and self.default is not None and getattr(prim, "higher", None) is None:
            rule = self._by_default(self.default, prim)
        self._found[prim] = rule
        return rule

    def _by_default(self, default: Rule, prim: Any) -> Rule | None:
        """Return the default rule for a primitive without another, with the primitive bound."""
        if self.fallback is not None:
            if isinstance(self.fallback, str):
                self.fallback = _named(self.fallback, self.name)
                self.fallback._above.append(self)
            found = self.fallback.find(prim)
            return None if found is None else partial(default, prim, found)
        said = _tables.get("expand")
        if said is not None:
            if self not in said._above:
                said._above.append(self)
            if said.find(prim) is not None and prim.effect is None:
                return None
        return partial(default, prim)

    def _of_traits(self, prim: Keyed) -> Rule | None:
        """Return the rule of the first trait that has one, with the primitive bound."""
        for trait in prim.traits:
            self._load(trait.namespace)
        for trait in prim.traits:
            rule = self._unique(trait)
            if rule is not None:
                return partial(rule, prim)
        self._report_failures(prim)
        return None

    def own(self, key: Keyed | Trait) -> Rule | None:
        """Return the rule registered for this key itself, without traits."""
        self._load_all(key)
        return self._unique(key)

    def _unique(self, key: Keyed | Trait) -> Rule | None:
        """Return the rule for this key itself; raise DuplicateRule if there are two."""
        if key in self._clashes:
            raise self._duplicate(key, *self._clashes[key])
        return self._rules.get(key)

    def __getitem__(self, prim: Keyed) -> Rule:
        rule = self.find(prim)
        if rule is None:
            raise self.missing(prim)
        return rule

    def _load_all(self, key: Keyed | Trait) -> None:
        """Import the rules for the namespaces of a primitive or trait, also for former ones.

        A plugin may be older than a primitive's name, and declare its rule for the former one.
        """
        for namespace in _namespaces(key):
            self._load(namespace)

    def _load(self, namespace: str) -> None:
        if namespace in self._loaded:
            return
        with loading:
            if (self.name, namespace) in _loading or namespace in self._loaded:
                return
            _loading.add((self.name, namespace))
            failed: list[PluginError] = []
            self._unheard.pop(namespace, None)
            try:
                for d in installed(self.group, namespace):
                    needed = namespace not in self.own_namespaces and owns(d, self.name, namespace)
                    if not admitted(d.distribution):
                        if needed:
                            self._unheard[namespace] = left_out(d)
                        continue
                    try:
                        load(d)
                    except PluginError as e:
                        failed.append(e)
                        if needed:
                            self._unheard[namespace] = e
                self._failed[namespace] = failed
                # Set last: threads that need these rules wait at the lock until all are registered.
                # In half a table, a trait could answer for a rule that is not registered yet.
                self._loaded.add(namespace)
            finally:
                _loading.discard((self.name, namespace))
        if namespace not in self._unheard:
            for e in failed:
                said = f"rules of {self.name!r} for {namespace!r} may be missing: {e}"
                warn(said, PluginWarning)

    def hear_again(self) -> None:
        """Load the plugins again when they are next needed, and clear the memo."""
        self._loaded = set(self.own_namespaces)
        self._found.clear()

    def _report_failures(self, prim: Keyed) -> None:
        """Raise the error of a plugin that failed, if it may have brought the missing rule."""
        for namespace in {*_namespaces(prim), *(t.namespace for t in prim.traits)}:
            for error in self._failed.get(namespace, ()):
                raise error

    def missing(self, prim: Keyed, where: object = None) -> MissingRule:
        """Return the error for a primitive without a rule."""
        found: tuple[Declared, ...] = declared(self.group, prim.namespace)
        looked = ", ".join(f"{d.point.value} of {d}" for d in found) or "no installed module"
        short = variable(prim)
        fix = (
            f"add one:  @{self.name}_rules.rule({short})\n"
            f"or say it with other primitives:  @expand_rules.rule({short})"
        )
        if not found and self.name in TABLES and not declared("plait.tables", self.name):
            fix = f"{install_command(TABLES[self.name])}\n{fix}"
        return MissingRule(
            f"no {self.name!r} rule for primitive {prim.name!r}; looked in {looked} "
            f"(entry-point group {self.group!r}, name {prim.namespace!r})",
            where=where,
            fix=fix,
        )


def variable(prim: Keyed) -> str:
    """Return the name by which the module that defines a primitive holds it.

    It is often another than the primitive's: beside a primitive there is a function for users.
    """
    module = sys.modules.get(getattr(getattr(prim, "rule", None), "__module__", ""))
    held = vars(module).items() if module is not None else ()
    names = [name for name, value in held if value is prim and not name.startswith("_")]
    return names[0] if names else prim.name.rpartition(".")[2]


def _namespaces(key: Keyed | Trait) -> tuple[str, ...]:
    """Return the namespace of a primitive or trait, then those of its former names."""
    former = [name.rpartition(".")[0] for name in getattr(key, "formerly", ())]
    return tuple(dict.fromkeys((key.namespace, *former)))


def again(held: Rule, fn: Rule) -> bool:
    """Return whether `fn` is the rule `held` again, after its module failed to import and was
    imported anew.

    Then the names are equal, and the module's globals are not the same object.
    """
    names = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (held, fn)]
    scopes = [getattr(f, "__globals__", None) for f in (held, fn)]
    return names[0] == names[1] and scopes[0] is not scopes[1]


def _entered(code: CodeType, at: TracebackType | None) -> bool:
    """Return whether a traceback passes through a function of this code."""
    while at is not None:
        if at.tb_frame.f_code is code:
            return True
        at = at.tb_next
    return False


def origin(fn: Rule) -> str:
    """Return the function, module, line and distribution of a rule, for messages."""
    fn = getattr(fn, "func", fn)
    module = getattr(fn, "__module__", None) or "?"
    code = getattr(fn, "__code__", None)
    line = f":{code.co_firstlineno}" if code is not None else ""
    return f"{module}.{getattr(fn, '__qualname__', fn)}{line} ({distribution_of(module)})"


def described(module: str) -> str:
    """Return a module and its distribution, for messages."""
    return f"{module} ({distribution_of(module)})"


def _named(name: str, user: str) -> RuleTable:
    """Return the table of a name, which a plugin may have to be loaded for."""
    for d in () if name in _tables else declared("plait.tables", name):
        load(d)
    if name not in _tables:
        raise PluginError(
            f"the table {user!r} falls back to {name!r}, which no installed distribution has",
            fix=install_command(TABLES[name]) if name in TABLES else "install its distribution",
        )
    return _tables[name]


def tables() -> dict[str, RuleTable]:
    """Return every table that exists in this process."""
    return dict(_tables)


_plugins = [config.plugins]


def _forget() -> None:
    """Load plugins again if the setting `plugins` has changed."""
    if config.plugins != _plugins[0]:
        _plugins[0] = config.plugins
        for table in _tables.values():
            table.hear_again()


config.watch(_forget)
