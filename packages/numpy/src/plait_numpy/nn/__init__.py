"""Functions for neural networks: activations, softmax, normalisation, attention, initializers.

Invariant: every function is composed of primitives; none has a rule of its own.
"""

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
