# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_checks import CheckError as CheckError
from plait_checks import DivisionByZeroError as DivisionByZeroError
from plait_checks import Error as Error
from plait_checks import ErrorCategory as ErrorCategory
from plait_checks import FailedCheckError as FailedCheckError
from plait_checks import NaNError as NaNError
from plait_checks import OutOfBoundsError as OutOfBoundsError
from plait_checks import Place as Place
from plait_checks import all_checks as all_checks
from plait_checks import automatic_checks as automatic_checks
from plait_checks import check as check
from plait_checks import check_error as check_error
from plait_checks import checkify as checkify
from plait_checks import debug_check as debug_check
from plait_checks import div_checks as div_checks
from plait_checks import float_checks as float_checks
from plait_checks import index_checks as index_checks
from plait_checks import init_error as init_error
from plait_checks import nan_checks as nan_checks
from plait_checks import user_checks as user_checks
