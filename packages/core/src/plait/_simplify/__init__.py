"""Smaller programs that do the same: dead code, common subexpressions, identities, inlining.

    simplify(program)        everything that is exact, here and in sub-programs
    dce(program, keep)       only what some of the outputs need
    inline_calls(program)    calls replaced by what they call
    rerolled(program, ...)   equal layers as a scan

Invariant: a program computes the same bits before and after.  Types, names, inputs, the order of
effects, and how often each of them happens stay; an identity that IEEE arithmetic lacks (x + 0.0
for x = -0.0, x * 0.0 for x = nan) is not used.  What is made of a program is kept on it.
"""

from . import identities as _identities
from .deadcode import dce
from .inlining import inline_calls
from .rerolling import rerolled
from .rewriting import Instead, simplify, simplify_rules

__all__ = ["Instead", "dce", "inline_calls", "rerolled", "simplify", "simplify_rules"]
