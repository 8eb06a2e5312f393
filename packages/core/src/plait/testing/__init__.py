"""Checks for those who write primitives and transformations; needs no test framework.

    from plait.testing import conformance
    conformance(my_primitive, samples, numpy_reference)

Invariant: nothing of Plait imports this, and everything here raises AssertionError, with a text
that says what is wrong, or returns a structured report.
"""

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
    "Inapplicable",
    "Nonconforming",
    "Reference",
    "Report",
    "Sample",
    "agree",
    "conformance",
    "coverage",
    "differences_text",
    "matrix",
    "matrix_text",
    "numpy_evaluate",
    "random_arguments",
    "random_program",
    "reference",
    "tolerance",
    "transform_suite",
    "trial",
]
