"""Programs as text: printing them, and reading that text back.

    given b >= 2
    lambda(%0: f32[b], %1: f32[]*) {
      const %2: f32[2] = [1.0, 2.0]
      %3: f32[b] = core.sin(%0)
      %4: f32[b] = core.mul(%3, 2.0:f32[b])
      %5: f32[]* = core.call(%1; program=double(%0: f32[]*) {
        %1: f32[]* = core.add(%0, %0)
        return %1
      })
      return %4, %5
    }

The name comes first, then inputs, constants (large ones by number, as `@0`), equations, outputs,
and effects (`} does debug and ordered io`).  A `*` marks a weak type; a literal is a scalar with
the type that it fills.  `given` lists the constraints on symbolic sizes.  A sub-program that occurs
more than once is printed once, in front, as `@1 = double(...) {...}`, and `@1` stands for it.

Invariant: if every parameter has a text form, `parse(show(p))` is the same program as `p`, and
shares the same sub-programs and constants.  A parameter without a text form prints in angle
brackets.
"""

from .._base.lazy import advise as _advise
from .._base.tracebacks import explained_calls as _explained_calls
from .comparing import same_program
from .reading import parse
from .writing import show

__all__ = ["parse", "same_program", "show"]

_explained_calls(globals())
_advise("plait.text", globals())
