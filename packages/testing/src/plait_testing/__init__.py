"""Checks for authors of primitives and transformations; independent of test frameworks.

    from plait.testing import conformance
    conformance(my_primitive, samples, numpy_reference)

Invariant: nothing in Plait imports this.  Everything here raises AssertionError, with a text that
states the fault, or returns a structured report.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.surface import advise as _advise
from plait.ext.surface import explained_calls as _explained_calls

from .carriers import transform_suite
from .columns import coverage, matrix, matrix_text
from .differences import differences_text
from .kit import conformance
from .oracle import numpy_evaluate
from .programs import random_arguments, random_program
from .references import reference
from .report import Inapplicable, Nonconforming, Report, agree, tolerance
from .samples import Reference, Sample
from .trials import trial

__all__ = [
    "Inapplicable", "Nonconforming", "Reference", "Report", "Sample", "agree", "conformance",
    "coverage", "differences_text", "matrix", "matrix_text", "numpy_evaluate", "random_arguments",
    "random_program", "reference", "tolerance", "transform_suite", "trial",
]  # fmt: skip

_hide(_os.path.dirname(__file__))

_explained_calls(globals())

_advise("plait.testing", globals())
