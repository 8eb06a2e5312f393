"""Outer references in shard_map: every device has all of one, and writes the same to it.

Invariant: only the table of plait_state loads this.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import ArgumentError, user_line
from plait_state.ext import discharge_rules, discharged, finished, held

from .manual import shard_map_p

__all__: list[str] = []


@discharge_rules.rule(shard_map_p)
def _shard_map(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    d = discharged(params["program"])
    if d.written and not params["typed"]:
        ref = args[d.written[0]]
        raise ArgumentError(
            f"a function under shard_map(check_vma=False) writes a reference of outside, {ref!r}, "
            f"made at {user_line(ref.where)}: each device might write something else",
            fix="pass it as an argument, so that each device has its piece, or leave out "
            "check_vma=False",
        )
    # A reference has no axes, so its in_spec does not fit its contents.  The contents are whole on
    # every device, and so is the written value, since it has the same type.
    operands = held(args)
    whole = [((),) * x.aval.ndim for x in operands]
    specs = [s if x is a else w for x, a, w, s in zip(operands, args, whole, params["in_specs"])]
    outs = shard_map_p.bind(
        *operands,
        **{
            **params,
            "program": d.program,
            "in_specs": tuple(specs),
            "out_specs": (*(whole[i] for i in d.written), *params["out_specs"]),
        },
    )
    return finished(args, d.written, outs)
