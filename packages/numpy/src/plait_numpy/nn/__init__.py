"""Functions for neural networks: activations, softmax, normalisation, attention, initializers.

Invariant: every function is composed of primitives; none has a rule of its own.
"""

from plait.ext.surface import advise as _advise
from plait.ext.surface import found_by_name as _found_by_name

from ..refusals import explain as _explain
from . import activations, initializers
from .activations import *
from .attention import dot_product_attention
from .exponentials import log_softmax, logmeanexp, logsumexp, softmax
from .normalisation import one_hot, standardize
from .scaling import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

__all__ = [
    "dot_product_attention", "get_scaled_dot_general_config", "initializers", "log_softmax",
    "logmeanexp", "logsumexp", "one_hot", "scaled_dot_general", "scaled_matmul", "softmax",
    "standardize",
]  # fmt: skip
__all__ += activations.__all__

_found_by_name(globals())
_explain(globals())
_advise("plait.nn", globals())
