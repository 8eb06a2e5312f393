# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_testing import Inapplicable as Inapplicable
from plait_testing import Nonconforming as Nonconforming
from plait_testing import Reference as Reference
from plait_testing import Report as Report
from plait_testing import Sample as Sample
from plait_testing import agree as agree
from plait_testing import conformance as conformance
from plait_testing import coverage as coverage
from plait_testing import differences_text as differences_text
from plait_testing import matrix as matrix
from plait_testing import matrix_text as matrix_text
from plait_testing import numpy_evaluate as numpy_evaluate
from plait_testing import random_arguments as random_arguments
from plait_testing import random_program as random_program
from plait_testing import reference as reference
from plait_testing import tolerance as tolerance
from plait_testing import transform_suite as transform_suite
from plait_testing import trial as trial
