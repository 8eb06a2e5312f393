"""Forms of operations that a CPU's compiler makes faster code of.

A compiler may have a fast way for an operation in one form and a slow one in another: products of
matrices are fast on CPUs where the convolutions that are such products are not.  The rules here
choose by types and parameters, so that an operation has one form wherever it occurs, alone or in a
program.  They are for CPUs, and for modules that are compiled here: an artifact is for compilers
that are not known.

Invariant: a form computes what the operation does, in the same precision, and holds no arrays.
"""

from typing import Any

from .._base.config import config
from .._core.interpreter import as_list
from .._core.ir import Eqn, Program
from .._core.staging import staged
from .._plugins.rules import RuleTable

cpu_form_rules = RuleTable(
    "cpu_forms",
    owns=("core",),
    signature="(avals, **params)",
    doc="None to keep the operation, or a function of its operands that computes the same by "
    "operations which CPUs do faster.",
)


def wanted(platforms: tuple[str, ...]) -> bool:
    """Return whether a module for these platforms has operations in the forms of this table."""
    return config.cpu_forms and platforms == ("cpu",)


def form(e: Eqn) -> Program | None:
    """Return the program that an equation of a primitive with a rule becomes; None to keep it.

    Operations on values with explicit shardings are kept: pieces of these may not be divisible.
    """
    rule: Any = cpu_form_rules.find(e.prim)
    avals = tuple([a.aval for a in e.inputs])
    if any(a.sharding is not None for a in avals):
        return None
    key = "form", avals, e.prim.frozen(e.params), config.cpu_limits
    known = e.prim.compiled
    if key not in known:
        function = rule(avals, **e.params)
        if function is None:
            known[key] = None
        else:
            name = e.prim.name.rpartition(".")[2]
            known[key] = staged(lambda *xs: as_list(function(*xs)), avals, name, prune=True)
    return known[key]
