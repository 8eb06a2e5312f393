"""Mixed precision: products of matrices and convolutions in sixteen bits, the rest in float32.

    fast = mixed_precision(loss)                # bfloat16
    fast = mixed_precision(loss, "float16")

The policy, for whatever `f` computes from its arguments:

* a contraction or a convolution of float32 operands gets these rounded to the sixteen bits, and
  adds up, and gives, float32;
* everything else - sums, exponentials, normalisation, decompositions, the update of parameters -
  is left in float32, as it is written;
* other dtypes (float64, integers) are left alone: whoever asked for these has a reason.

Take derivatives inside, `mixed_precision(grad(loss))`, and the contractions of the backward pass
have their operands rounded, too. Outside, `grad(mixed_precision(loss))`, they are in float32.

Invariant: every value has the type that it has without us; there is one form, "seen".
"""

import os

import numpy as np

from plait import dtypes, ext, tree
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.shape import convert
from plait.ext.types import FLOAT32

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

DTYPES = {"bfloat16": np.dtype(dtypes.bfloat16), "float16": np.dtype(np.float16)}


precision_rules = ext.RuleTable(
    "precision",
    doc="rule(dtype, *operands, **params) -> result; by default an operation is left alone",
    default=lambda prim, dtype, /, *operands, **params: prim.bind(*operands, **params),
)


class Mixed(ext.Carrier):
    """Marks what is computed from the arguments, so that it is seen."""

    rules, does, fields = precision_rules, "mixed_precision", ("dtype",)
    commutes = frozenset(("derivative", "mapping"))  # a rule is a function like any other

    def whole(self, aval):
        return "seen"

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        out = rule(self.dtype, *[self.split(a)[1][0] for a in args], **params)
        lifted = [self.lift(o.aval, "seen", (o,)) for o in (out if prim.many else [out])]
        return lifted if prim.many else lifted[0]


for _p in (dot_general, conv_general):

    @precision_rules.rule(_p)
    def _(dtype, x, y, prim=_p, /, **params):
        if x.dtype == y.dtype == FLOAT32:
            x, y = convert(x, dtype), convert(y, dtype)
        return prim.bind(x, y, **params)


def mixed_precision(f, dtype="bfloat16"):
    """`f` with its contractions and convolutions in sixteen bits; the module says the policy.

    Args:
      f: a function of trees of arrays.
      dtype: "bfloat16" (the range of float32, 8 bits of precision) or "float16" (11 bits, and
        nothing beyond 65504: scale your loss).

    Returns:
      A function of the same arguments, whose results have the same types.

    Raises PlaitError for another dtype.
    """
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in DTYPES:
        raise ext.PlaitError(
            f"mixed_precision does not compute in {name}", fix=f"use one of {', '.join(DTYPES)}"
        )

    def mixed(*args):
        with ext.opened(Mixed(ext.current(), DTYPES[name], of=f)) as m:

            def lift(x):
                value = ext.as_value(x)
                return m.lift(value.aval, "seen", (value,))

            # `tree.map` leaves alone what describes other leaves, as lengths of rows do
            outs, out_kind = ext.flatten(f(*tree.map(lift, args)))
        parts = [m.split(ext.as_value(o))[1][0] for o in outs]
        return out_kind.unflatten([ext.materialise_at_ground(p) for p in parts])

    return mixed
