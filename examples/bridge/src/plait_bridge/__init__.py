"""Units through the recurrence in C++: the rule of plait-units for the primitive of plait-foreign.

Neither of the two knows the other. The entry point of this distribution, in the group
`plait.rules.units` under the name `foreign`, is all that joins them: the table imports this module
when it is first asked about a primitive of `foreign`.

Invariant: nothing here is for users to call.
"""

import os

from plait_foreign import recur
from plait_units import ONE, units_rules

from plait import ext

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller


@units_rules.rule(recur)
def _(x, decay, reverse=False):
    """What is added up keeps its unit, and what it is multiplied with at each step has none."""
    if decay not in (None, ONE):
        raise ext.PlaitError(
            f"the decay of foreign.recur is in {decay!r}, so its results would be in no one unit",
            fix="divide it by a Quantity of that unit",
        )
    return x
