"""Installed plugins: their declarations, permission to use them, and missing ones.

The metadata (entry points) of installed distributions is the only source of transformations, rule
modules and public names.  The project's own distributions use it too.

Invariant: metadata is read once, when first needed, and never while Plait is being imported.  A
broken plugin is reported when it is used, and breaks nothing else.
"""

import re
import sys
from collections.abc import Callable
from functools import cache
from threading import RLock, get_ident
from threading import enumerate as enumerate_threads
from typing import Any, NamedTuple

from .._base.config import config
from .._base.entry_points import EntryPoint, Unread, distributions
from .._base.errors import MissingPlugin, PluginError
from .._base.lazy import later

CORE = "plait-core"
PLUGIN_API = (1, 1)
"""The version of the names in `plait.ext`: (major, minor)."""
DISTRIBUTION_OF = {
    "plait-autodiff": (
        "jvp vjp grad value_and_grad linearize linear_transpose jacfwd jacrev hessian "
        "custom_jvp custom_vjp checkpoint check_grads checkpoint_name checkpoint_policies "
        "checkpoint_scan saved_residuals print_saved_residuals jet hvp vhp fwd_laplacian "
        "implicit_diff custom_root custom_linear_solve custom_ivjp invertible SymbolicZero "
        "CustomPrimal jacobian remat closure_convert custom_gradient fwd_and_bwd "
        "is_adable register_adable unregister_adable"
    ),
    "plait-batching": (
        "vmap custom_vmap sequential_vmap is_vmappable register_vmappable unregister_vmappable "
        "vtile Capacities Pile mask pile_axis"
    ),
    "plait-sharding": (
        "Mesh PartitionSpec P NamedSharding SingleDeviceSharding device_put make_mesh set_mesh "
        "with_sharding_constraint shard_map pmap sharding make_array_from_callback "
        "make_array_from_process_local_data make_array_from_single_device_arrays Shard xmap "
        "inspect_array_sharding visualize_array_sharding visualize_sharding distributed"
    ),
    "plait-export": "export",
    "plait-state": "new_ref Ref freeze empty_ref free_ref",
    "plait-numpy": (
        "numpy scipy random nn image ops linalg ragged_dot ragged_dot_general "
        "RaggedDotDimensionNumbers bessel_i0e bessel_i1e betainc igamma igamma_grad_a igammac "
        "polygamma random_gamma_grad regularized_incomplete_beta zeta"
    ),
    "plait-checks": "checks",
    "plait-inspect": "show profiler breakpoint progress",
    "plait-testing": "testing",
    "plait-sparse": "sparse",
}
"""The distributions that offer each public name, for install hints only."""
TABLES = {
    "jvp": "plait-autodiff",
    "transpose": "plait-autodiff",
    "split": "plait-autodiff",
    "recompute": "plait-autodiff",
    "jet": "plait-autodiff",
    "laplacian": "plait-autodiff",
    "inverse": "plait-autodiff",
    "batching": "plait-batching",
    "piles": "plait-batching",
    "padding": "plait-batching",
    "explicit": "plait-sharding",
    "notes": "plait-inspect",
    "discharge": "plait-state",
    "sparsify": "plait-sparse",
}
MODULES = {
    "ad": "plait-autodiff",
    "ad_checkpoint": "plait-autodiff",
    "custom_derivatives": "plait-autodiff",
    "experimental.jet": "plait-autodiff",
    "test_util": "plait-autodiff",
    "custom_batching": "plait-batching",
    "interpreters.batching": "plait-batching",
    "experimental.maps": "plait-sharding",
    "experimental.mesh_utils": "plait-sharding",
    "experimental.multihost_utils": "plait-sharding",
    "experimental.shard_map": "plait-sharding",
    "experimental.topologies": "plait-sharding",
    "ref": "plait-state",
    "ext.ops.attention": "plait-numpy",
    "ext.ops.linalg": "plait-numpy",
    "ext.ops.special": "plait-numpy",
    "ext.notes": "plait-inspect",
    "ext.testing": "plait-testing",
    "lax.linalg": "plait-numpy",
}
"""The distributions that offer each module of names, for install hints only."""
GUARD_HINTS = {"debug_key_reuse": "plait-checks"}
"""The distributions with the checks of programs, by the settings that turn them on."""
HINTS = {name: dist for dist, names in DISTRIBUTION_OF.items() for name in names.split()}


SURFACES = ("plait.api", "plait.lax", "plait.debug")
"""Groups of names that plugins add to `plait`, and to some of its modules."""
GUARDS = "plait.guards"
"""The group of checks of programs, by the setting that turns each on."""
PAGES = "plait.pages"
"""The group of functions that return the HTML of a value, by kinds of values."""
EXTENSIONS = "plait.ext"
"""The group of modules that plugins add to `plait.ext`."""


class _Loading:
    """A lock that is held while plugins are imported; re-entrant, since an imported module may
    import others.

    A thread that looks for rules holds it, and then takes Python's locks of modules.  A thread that
    imports a plugin therefore takes it first, too: its modules look for rules while they are
    imported.

    A plugin may start a thread while it is imported, and wait for it.  If that thread needs rules,
    both would wait for ever.  So a thread that began after the import did waits for some time only.
    """

    patience = 10.0

    def __init__(self) -> None:
        self._lock, self._depth = RLock(), 0
        self._there: frozenset[int | None] = frozenset()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            is_new = get_ident() not in self._there
            if not self._lock.acquire(timeout=self.patience if is_new else -1):
                raise PluginError(
                    "a thread that began while a plugin is imported waited "
                    f"{self.patience:.0f} seconds for that import",
                    fix="a plugin must not wait, while it is imported, for threads that use Plait: "
                    "start them when it is used",
                )
        self._depth += 1
        if self._depth == 1:
            self._there = frozenset([t.ident for t in enumerate_threads()])

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._lock.release()


loading = _Loading()
API_GROUP = "plait.plugin_api"
"""The group of entry points that declare the PLUGIN_API that a distribution was built for.  An
entry point's name is that version ("1.0"), its value the import package."""
FORMER_NAMES = "plait.former_names"
"""The group of entry points that declare where primitives of a namespace have gone: the name is the
namespace that they left, the value a module that defines them with `formerly=`."""


class Declared(NamedTuple):
    """One entry point, with its distribution."""

    point: EntryPoint
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


_unread: list[Unread] = []


@cache
def scan() -> dict[tuple[str, str], tuple[Declared, ...]]:
    """Return the declarations of installed distributions, by (group, name)."""
    found, _unread[:] = distributions("plait.")
    index: dict[tuple[str, str], list[Declared]] = {}
    for name, version, points in found:
        for p in points:
            index.setdefault((p.group, p.name), []).append(Declared(p, name, version))
    return {k: tuple(sorted(v, key=lambda d: d.distribution)) for k, v in index.items()}


def unread() -> tuple[Unread, ...]:
    """Return the distributions, and lines of their declarations, that cannot be read."""
    scan()
    return tuple(_unread)


@cache
def declared_api(distribution: str) -> tuple[int, int] | None:
    """Return the PLUGIN_API that a distribution declares it was built for; None without a
    declaration."""
    for (group, name), found in scan().items():
        if group == API_GROUP and any(d.distribution == distribution for d in found):
            major, _, minor = name.partition(".")
            if all(n.isdecimal() and len(n) < 10 for n in (major, minor)):
                return int(major), int(minor)
    return None


def misfit(d: Declared) -> PluginError | None:
    """Return the error of a distribution that cannot work with this core; None if it can.

    It can if it was built for the same major version, and for no later minor version than core's.
    """
    if d.distribution == CORE:
        return None
    built, have = declared_api(d.distribution), PLUGIN_API
    if built is not None and built[0] == have[0] and built[1] <= have[1]:
        return None
    here = f"{CORE} {core_version()} has PLUGIN_API {have[0]}.{have[1]}"
    if built is None:
        what = f"{d} does not say which PLUGIN_API it was built for; {here}"
        fix = (
            f"python -m pip install --upgrade {d.distribution} {CORE}\n"
            f'if it is yours, declare it:  [project.entry-points."{API_GROUP}"]  '
            f'"{have[0]}.{have[1]}" = "the_package"'
        )
    else:
        what = f"{d} was built for PLUGIN_API {built[0]}.{built[1]}, and {here}"
        old = d.distribution if built < have else CORE
        fix = f"python -m pip install --upgrade {old}"
    return PluginError(what, fix=fix)


def distribution_of(module: str) -> str:
    """Return the distribution that a module comes from, with its version; else its top package."""
    from importlib.metadata import packages_distributions, version

    top = module.partition(".")[0]
    try:
        found = packages_distributions().get(top, ())
        return f"{found[0]} {version(found[0])}" if found else top
    except Exception:  # some distribution, of any name, cannot be read
        return top


def left_out(d: Declared) -> PluginError:
    """Return the error for a distribution that is needed, and left out by the setting `plugins`."""
    short = d.distribution.removeprefix("plait-")
    return PluginError(
        f"{d} is left out by PLAIT_PLUGINS={config.plugins}",
        fix=f"admit it: PLAIT_PLUGINS={'' if config.plugins == 'off' else config.plugins + ','}"
        f"{short}",
    )


def owns(d: Declared, table: str, namespace: str) -> bool:
    """Return whether a distribution must be loaded before `table` answers about `namespace`.

    The owners of the primitives and of the table must.  If no distribution declares that it owns
    the primitives, every distribution that declares rules for them must.  Others (glue) may have
    rules, too, but no answer depends on them.
    """
    owners = [o.distribution for o in scan().get(("plait.primitives", namespace), ())]
    owners += [o.distribution for o in scan().get(("plait.tables", table), ())]
    return d.distribution in owners or ("plait.primitives", namespace) not in scan()


def installed(group: str, name: str) -> tuple[Declared, ...]:
    """Return the declarations of installed distributions under (group, name), admitted or not."""
    return scan().get((group, name), ())


def declared(group: str, name: str) -> tuple[Declared, ...]:
    """Return the declarations of installed and admitted distributions under (group, name)."""
    found = installed(group, name)
    return tuple([d for d in found if admitted(d.distribution)]) if found else ()


def names(group: str) -> list[str]:
    """Return every name declared in a group."""
    return sorted({n for (g, n), ds in scan().items() if g == group and declared(g, n)})


def admitted(distribution: str) -> bool:
    """Return whether the setting `plugins` lets a distribution take part."""
    allowed = config.plugins
    if allowed == "all" or distribution == CORE:
        return True
    if allowed == "off":
        return False
    return distribution.removeprefix("plait-") in {
        a.strip().removeprefix("plait-") for a in allowed.split(",")
    }


@cache
def core_version() -> str:
    """Return the version of core that runs, by its metadata; "unknown" if it is not installed."""
    found = (d for ds in scan().values() for d in ds if d.distribution == CORE)
    return next((d.version for d in found), "unknown")


def load(d: Declared):
    """Return the object that an entry point names.  Plugins are imported here and nowhere else.

    Raises PluginError, with the distribution and a remedy.
    """
    wrong = misfit(d)
    if wrong is not None:
        raise wrong
    try:
        with loading:
            return d.point.load()
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as e:  # SystemExit, too: a plugin cannot end the program of its user
        if isinstance(e, RecursionError) and _deep():
            raise
        old = " ".join(dict.fromkeys([d.distribution, lacking(e) or d.distribution]))
        raise PluginError(
            f"the plugin {d} cannot be loaded: {d.point.value} ({d.point.group}, "
            f"{d.point.name!r}) raised {type(e).__name__}: {_text(e)}",
            fix=f"python -m pip install --upgrade {old}   "
            f"(or leave it out: PLAIT_PLUGINS without {d.distribution.removeprefix('plait-')})",
        ) from e


def _deep() -> bool:
    """Return whether the caller's own recursion has left too little of the stack for imports."""
    frame, left = sys._getframe(1), sys.getrecursionlimit()
    while frame.f_back is not None and left > _IMPORTS:
        frame, left = frame.f_back, left - 1
    return left <= _IMPORTS


_IMPORTS = 500
"""Frames below which a plugin that imports others may not find enough."""


def lacking(error: BaseException | None) -> str | None:
    """Return the core or the plugin whose modules lack what an import looked for in them."""
    if not isinstance(error, ImportError) or not isinstance(error.name, str):
        return None
    top = error.name.partition(".")[0]
    if top == __name__.partition(".")[0]:
        return CORE
    owners = (d for ds in scan().values() for d in ds if d.point.module.partition(".")[0] == top)
    return next((d.distribution for d in owners), None)


def _text(error: BaseException) -> str:
    """Return the text of an error, whose class may be broken as well."""
    try:
        return str(error)
    except Exception:
        return "(it has no text)"


def install_command(*distributions: str, extra: str = "") -> str:
    """Return the command that installs distributions; its module is imported for messages alone."""
    return later("_plugins.installing").install_command(*distributions, extra=extra)


def library(name: str, does: str, distribution: str, extra: str) -> Any:
    """Import a module of a library that an extra requires; see `installing.library`."""
    return later("_plugins.installing").library(name, does, distribution, extra)


def _closest(module: str, name: str) -> Callable[[], str]:
    spelling = later("_base.spelling")
    return spelling.closest(module, name, lambda: dir(sys.modules[module]))


def resolve(name: str, group: str = "plait.api"):
    """Return the object behind a public name `plait.<name>` that core does not own.

    With another of the SURFACES as `group`, such as `plait.lax`, the name is `plait.lax.<name>`.
    """
    found, module = declared(group, name), group.removesuffix(".api")
    if len(found) > 1:
        raise PluginError(
            f"{module}.{name} is declared by {' and by '.join(map(str, found))}",
            fix="uninstall one of them, or name the others in PLAIT_PLUGINS",
        )
    if found:
        try:
            return load(found[0])
        except PluginError as e:
            if not isinstance(e.__context__, MissingPlugin):
                raise
            what = f"{module}.{name} of {found[0]} needs more than is installed: {e.what}"
            raise _with_extra(what, found[0].distribution, e.__context__) from None
    dist = HINTS.get(name) or MODULES.get(name)
    if dist is None or any(declared(g, name) for g in SURFACES):
        raise MissingPlugin(f"{module} has no {name!r}", fix=_closest(module, name))
    hidden = "" if admitted(dist) else f", or admit it: PLAIT_PLUGINS={config.plugins},..."
    raise MissingPlugin(
        f"{module}.{name} belongs to {dist}, which is not installed",
        fix=lambda: install_command(dist) + hidden,
        distribution=dist,
    )


def _with_extra(what: str, distribution: str, missing: MissingPlugin) -> MissingPlugin:
    """Return the error of a plugin that needs a missing distribution.

    The remedy is the extra that requires the missing one, if there is such an extra: it also brings
    the others that are needed.
    """
    extra = extra_of(distribution, missing.distribution)
    fix = install_command(distribution, extra=extra) if extra else missing.fix
    return MissingPlugin(what, fix=fix, distribution=missing.distribution)


def extra_of(distribution: str, missing: str | None) -> str | None:
    """Return the extra of a distribution that requires a missing one."""
    from importlib.metadata import requires

    if missing is None:
        return None
    for row in requires(distribution) or ():
        found = re.match(rf"{missing}\b.*; *extra *== *['\"](\w+)['\"]", row)
        if found:
            return found[1]
    return None


def page_of(kind: str, *values: Any) -> str | None:
    """Return the HTML that notebooks show for values of Plait; None if no plugin makes pages.

    `kind` is a name in the group `plait.pages`.
    """
    found = declared(PAGES, kind)
    return load(found[0])(*values) if found else None


def public_names(group: str = "plait.api") -> list[str]:
    """Return the names that installed plugins add to `plait`, or to the module of the group."""
    return names(group)


def additions(module: dict[str, Any], group: str) -> tuple[Callable, Callable]:
    """Return `__getattr__` and `__dir__` for a module to which plugins add names.

    The names are those that installed plugins declare in `group`; each is resolved at its first
    use.
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = module[name] = resolve(name, group)
        return found

    def __dir__() -> list[str]:
        return sorted({*module["__all__"], *public_names(group)})

    return __getattr__, __dir__
