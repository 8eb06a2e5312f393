"""Smaller programs with the same results: dead code, common subexpressions, identities, inlining.

    simplify(program)        apply all exact rules, here and in sub-programs;
    dce(program, keep)       keep only the equations that some of the outputs need;
    inline_calls(program)    replace calls by the called programs;
    rerolled(program, ...)   roll equal layers into a scan;
    forwarded(prim, params)  find results that are operands, unchanged.

Invariant: a program computes the same bits before and after.  Types, names, inputs, the order of
effects, and the number of times that each happens stay.  An identity that IEEE arithmetic lacks
(x + 0.0 for x = -0.0, x * 0.0 for x = nan) is not used.  Results are cached on the program.
"""

from . import identities as _identities
from .deadcode import dce
from .forwarding import forwarded
from .inlining import inline_calls
from .rerolling import rerolled
from .rewriting import Instead, simplify, simplify_rules

__all__ = ["Instead", "dce", "forwarded", "inline_calls", "rerolled", "simplify", "simplify_rules"]
