"""Installed plugins: what they declare, whether they may be used, and what is missing.

Core learns of every transformation, rule module and public name from the metadata of installed
distributions (entry points), and from nowhere else; what the project itself ships comes through
the same door.

Invariant: metadata is read once, when first needed, and never while Plait is being imported.  A
broken plugin is reported when it is used, and breaks nothing else.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.config import config
from .._base.errors import MissingPlugin, PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CORE = "plait-core"
PLUGIN_API = (1, 0)
"""Version of the names in `plait.ext`: (major, minor)."""
DISTRIBUTION_OF = {
    "plait-autodiff": (
        "jvp vjp grad value_and_grad linearize linear_transpose jacfwd jacrev hessian "
        "custom_jvp custom_vjp checkpoint check_grads checkpoint_name checkpoint_policies "
        "checkpoint_scan saved_residuals print_saved_residuals PartialProgram PartialVal "
        "partial_eval partial_trace jet hvp vhp fwd_laplacian implicit_diff custom_root "
        "custom_linear_solve custom_ivjp invertible SymbolicZero CustomPrimal jacobian remat "
        "closure_convert custom_gradient fwd_and_bwd"
    ),
    "plait-batching": "vmap custom_vmap",
    "plait-sharding": (
        "Mesh PartitionSpec P NamedSharding SingleDeviceSharding device_put make_mesh "
        "with_sharding_constraint shard_map pmap sharding make_array_from_callback "
        "make_array_from_process_local_data make_array_from_single_device_arrays Shard"
    ),
    "plait-export": "export",
}
"""Which distribution offers which public name: for install hints only."""
TABLES = {
    "jvp": "plait-autodiff",
    "transpose": "plait-autodiff",
    "split": "plait-autodiff",
    "recompute": "plait-autodiff",
    "jet": "plait-autodiff",
    "laplacian": "plait-autodiff",
    "inverse": "plait-autodiff",
    "batching": "plait-batching",
}
HINTS = {name: dist for dist, names in DISTRIBUTION_OF.items() for name in names.split()}


class Declared(NamedTuple):
    """One entry point, and whose it is."""

    point: "EntryPoint"
    distribution: str
    version: str
    requires: str  # the range of core it admits, as it says it

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@cache
def _scan() -> dict[tuple[str, str], tuple[Declared, ...]]:
    from importlib.metadata import distributions  # 20 ms that `import plait` need not take

    index: dict[tuple[str, str], list[Declared]] = {}
    seen: set[str] = set()
    for dist in distributions():
        points = [p for p in dist.entry_points if p.group.startswith("plait.")]
        if not points:
            continue
        name = re.sub(r"[-_.]+", "-", dist.metadata["Name"]).lower()
        if name in seen:  # an earlier folder of sys.path wins, as it does for imports
            continue
        seen.add(name)
        asks = [r for r in dist.requires or () if re.match(r"plait[-_.]core\b", r, re.I)]
        requires = re.sub(r"^[\w.-]+|[()\s]|;.*$", "", asks[0]) if asks else ""
        for p in points:
            index.setdefault((p.group, p.name), []).append(
                Declared(p, name, dist.version, requires)
            )
    return {k: tuple(sorted(v, key=lambda d: d.distribution)) for k, v in index.items()}


def declared(group: str, name: str) -> tuple[Declared, ...]:
    """What installed and admitted distributions declare under (group, name)."""
    found = _scan().get((group, name), ())
    return tuple([d for d in found if admitted(d.distribution)]) if found else ()


def names(group: str) -> list[str]:
    """Every name declared in a group."""
    return sorted({n for (g, n), ds in _scan().items() if g == group and declared(g, n)})


def admitted(distribution: str) -> bool:
    """Whether the setting `plugins` lets it take part."""
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
    """The version of core that runs; its own when it is not installed as a distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(CORE)
    except PackageNotFoundError:
        return "0.1.0"


def _release(text: str) -> tuple[int, ...]:
    digits = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, digits.group().split("."))) if digits else ()


_COMPARE = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "~=": lambda a, b: a >= b,
}


def admits(requires: str, have: str) -> bool:
    """Whether a version lies in a range like `>=0.1,<1`."""
    mine = _release(have)
    for clause in filter(None, requires.split(",")):
        sign = re.match(r"[<>=!~]=?", clause)
        if sign is None:
            continue
        bound = _release(clause[sign.end() :])
        n = max(len(mine), len(bound))
        pad = lambda v: v + (0,) * (n - len(v))  # noqa: B023, E731
        if not _COMPARE[sign.group()](pad(mine), pad(bound)):
            return False
        if sign.group() == "~=" and mine[: len(bound) - 1] != bound[:-1]:
            return False
    return True


def load(d: Declared):
    """The object an entry point names; the only place where plugins are imported.

    Raises PluginError, naming the distribution and what mends it.
    """
    if not admits(d.requires, core_version()):
        raise PluginError(
            f"{d} needs {CORE}{d.requires}, and {core_version()} is installed",
            fix=f"python -m pip install --upgrade {d.distribution} {CORE}",
        )
    try:
        return d.point.load()
    except PluginError:
        raise
    except Exception as e:
        raise PluginError(
            f"the plugin {d} can not be loaded: {d.point.value} ({d.point.group}, "
            f"{d.point.name!r}) raised {type(e).__name__}: {e}",
            fix=f"python -m pip install --upgrade {d.distribution}   "
            f"(or leave it out: PLAIT_PLUGINS without {d.distribution.removeprefix('plait-')})",
        ) from e


def resolve(name: str, group: str = "plait.api"):
    """The object behind a public name `plait.<name>` that core does not own; of the groups
    `plait.ext` and `plait.lax`, behind `plait.ext.<name>` and `plait.lax.<name>`."""
    found, module = declared(group, name), group.removesuffix(".api")
    if len(found) > 1:
        raise PluginError(
            f"{module}.{name} is declared by {' and by '.join(map(str, found))}",
            fix="uninstall one of them, or name the others in PLAIT_PLUGINS",
        )
    if found:
        return load(found[0])
    dist = HINTS.get(name)
    if dist is None or any(declared(g, name) for g in ("plait.api", "plait.ext", "plait.lax")):
        raise MissingPlugin(f"{module} has no {name!r}", fix=f"dir({module}) lists what there is")
    hidden = "" if admitted(dist) else f", or admit it: PLAIT_PLUGINS={config.plugins},..."
    raise MissingPlugin(
        f"{module}.{name} belongs to {dist}, which is not installed",
        fix=f"python -m pip install {dist}{hidden}",
    )


def public_names(group: str = "plait.api") -> list[str]:
    """Names that installed plugins add to `plait` (or to the module that the group names)."""
    return names(group)


def additions(module: dict[str, Any], group: str) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a module to whose names installed plugins add those that they
    declare in `group`; each is found when it is first asked for."""

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = module[name] = resolve(name, group)
        return found

    def __dir__() -> list[str]:
        return sorted({*module["__all__"], *public_names(group)})

    return __getattr__, __dir__
