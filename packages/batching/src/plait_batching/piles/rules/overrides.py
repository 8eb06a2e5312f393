"""Functions with their own mapping rules.

A mapping rule takes stacks of values of one shape.  If sizes differ, the function itself is mapped
instead, since the rule must give the same results.

Invariant: a mapping rule gets stacks, never flat rows of several examples.
"""

from typing import Any

from plait.ext.ops.control_flow import call

from ...interpreter import batching_rules
from ...overrides import custom_vmap_call
from ..carrier import pile_rules

__all__: list[str] = []


@pile_rules.rule(custom_vmap_call)
def _(r, args, params: dict):
    custom: Any = custom_vmap_call.higher
    if custom.pending(params):
        args, params = custom.settle(params, args)
    args = [r.settled(a) for a in args]
    program = params["program"]
    if r.concerned(args, program.out_avals, {"program": program}):
        return r.through(call, args, {"program": program})
    return batching_rules.find(custom_vmap_call)(r, args, params)  # type: ignore[misc]
