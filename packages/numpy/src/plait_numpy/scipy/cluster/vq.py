"""The names of scipy.cluster.vq.

Invariant: everything is defined in `plait.scipy.cluster.codes`.
"""

from plait.ext.surface import advise as _advise

from ...refusals import explain
from .codes import vq

__all__ = ["vq"]

explain(globals())

_advise("plait.scipy.cluster.vq", globals())
