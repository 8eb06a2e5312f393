"""Rule tables: how a transformation learns what to do with each primitive.

A table is one column of the matrix primitive x transformation.  It answers with the primitive's
own rule, else with that of its first trait that has one, else with None.

Invariant: before a table answers about a namespace (of a primitive, or of one of its traits),
every installed module that declared rules for that (table, namespace) has been imported, so the
order of imports can not change an answer.  Rule modules register; they never look rules up while
they are imported.
"""

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, Protocol

from .._base.errors import DuplicateRule, MissingRule, PluginError
from .metadata import TABLES, Declared, declared, load
from .traits import Trait

_import_lock = RLock()
_loading: "set[tuple[str, str]]" = set()  # (table, namespace) whose modules are being imported
_tables: "dict[str, RuleTable]" = {}


class Keyed(Protocol):
    """What a table asks of a primitive."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def traits(self) -> tuple[Trait, ...]: ...


Rule = Callable[..., Any]


class RuleTable:
    """A table named `name`; `owns` are namespaces whose rules come with their definitions."""

    def __init__(self, name: str, owns: tuple[str, ...] = (), doc: str = ""):
        self.name, self.__doc__ = name, doc
        self.group = f"plait.rules.{name}"
        self._rules: dict[Any, Rule] = {}
        self._overridden: set[Any] = set()
        self._loaded: set[str] = set(owns)
        self._clashes: dict[Any, tuple[Rule, Rule]] = {}
        self._failed: dict[str, list[PluginError]] = {}
        self._found: dict[Any, Rule | None] = {}  # memo of `find`, forgotten when a rule comes
        _tables[name] = self

    def __repr__(self) -> str:
        return f"<rules {self.name}>"

    def rule(self, *keys: Keyed | Trait, override: bool = False) -> Callable[[Rule], Rule]:
        """Decorator: give this table a rule for primitives or traits."""

        def register(fn: Rule) -> Rule:
            for key in keys:
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
            self._found.clear()
            return fn

        return register

    def _refuse(self, key: Keyed | Trait, held: Rule, fn: Rule) -> None:
        """A second rule for one cell.

        While plugins are being imported it is kept for whoever asks for the cell: the module that
        brings it may be the innocent one, and its other rules are needed.
        """
        if not _loading:
            raise self._duplicate(key, held, fn)
        self._clashes[key] = held, fn
        self._found.clear()

    def _duplicate(self, key: Keyed | Trait, held: Rule, fn: Rule) -> DuplicateRule:
        return DuplicateRule(
            f"two {self.name!r} rules for {key}: {origin(held)} and {origin(fn)}",
            fix="leave one of them out, or pass override=True to replace the first",
        )

    def find(self, prim: Keyed) -> Rule | None:
        """The most specific rule, or None.

        Raises DuplicateRule if two installed modules gave one for this primitive, PluginError if
        there is none and a module that may have it could not be loaded.
        """
        try:
            return self._found[prim]
        except KeyError:
            pass
        self._load(prim.namespace)
        for trait in prim.traits:
            self._load(trait.namespace)
        key = next((k for k in (prim, *prim.traits) if k in self._rules), None)
        rule = None if key is None else self._unique(key)
        if rule is None:
            self._report_failures(prim)
        elif key is not prim:
            rule = partial(rule, prim)
        self._found[prim] = rule
        return rule

    def own(self, key: Keyed | Trait) -> Rule | None:
        """The rule registered for this very key, without traits."""
        self._load(key.namespace)
        return self._unique(key)

    def _unique(self, key: Keyed | Trait) -> Rule | None:
        """The rule for this very key, unless there are two."""
        if key in self._clashes:
            raise self._duplicate(key, *self._clashes[key])
        return self._rules.get(key)

    def __getitem__(self, prim: Keyed) -> Rule:
        rule = self.find(prim)
        if rule is None:
            raise self.missing(prim)
        return rule

    def _load(self, namespace: str) -> None:
        if namespace in self._loaded:
            return
        with _import_lock:  # re-entrant: a module being loaded may import others that load
            if (self.name, namespace) in _loading or namespace in self._loaded:
                return
            _loading.add((self.name, namespace))
            failed: list[PluginError] = []
            try:
                for d in declared(self.group, namespace):
                    try:
                        load(d)
                    except PluginError as e:
                        failed.append(e)
                self._failed[namespace] = failed
                self._loaded.add(namespace)  # only now: other threads wait for all of it
            finally:
                _loading.discard((self.name, namespace))

    def _report_failures(self, prim: Keyed) -> None:
        """A rule that is missing may be one that a broken plugin would have brought."""
        for namespace in {prim.namespace, *(t.namespace for t in prim.traits)}:
            for error in self._failed.get(namespace, ()):
                raise error

    def missing(self, prim: Keyed, where: Any = None) -> MissingRule:
        """The error for a primitive without a rule."""
        found: tuple[Declared, ...] = declared(self.group, prim.namespace)
        looked = ", ".join(f"{d.point.value} of {d}" for d in found) or "no installed module"
        short = prim.name.rpartition(".")[2]
        fix = (
            f"add one:  @{self.name}_rules.rule({short})\n"
            f"or say it with other primitives:  @expand_rules.rule({short})"
        )
        if not found and self.name in TABLES and not declared("plait.tables", self.name):
            fix = f"python -m pip install {TABLES[self.name]}\n" + fix
        return MissingRule(
            f"no {self.name!r} rule for primitive {prim.name!r}; looked in {looked} "
            f"(entry-point group {self.group!r}, name {prim.namespace!r})",
            where=where,
            fix=fix,
        )


def again(held: Rule, fn: Rule) -> bool:
    """Whether a rule comes from a module that failed to import, and is being imported anew."""
    names = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (held, fn)]
    scopes = [getattr(f, "__globals__", None) for f in (held, fn)]
    return names[0] == names[1] and scopes[0] is not scopes[1]


def origin(fn: Rule) -> str:
    """Which function of which module, for messages."""
    fn = getattr(fn, "func", fn)
    module = getattr(fn, "__module__", "?")
    return f"{module}.{getattr(fn, '__qualname__', fn)} ({module.partition('.')[0]})"


def tables() -> dict[str, RuleTable]:
    """Every table that exists in this process."""
    return dict(_tables)
