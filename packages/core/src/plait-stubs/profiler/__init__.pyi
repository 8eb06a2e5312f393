# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_inspect.profiler import LineCost as LineCost
from plait_inspect.profiler import LineTable as LineTable
from plait_inspect.profiler import StepTraceAnnotation as StepTraceAnnotation
from plait_inspect.profiler import TraceAnnotation as TraceAnnotation
from plait_inspect.profiler import annotate as annotate
from plait_inspect.profiler import annotate_function as annotate_function
from plait_inspect.profiler import by_line as by_line
from plait_inspect.profiler import device_memory_profile as device_memory_profile
from plait_inspect.profiler import save_device_memory_profile as save_device_memory_profile
from plait_inspect.profiler import start_server as start_server
from plait_inspect.profiler import start_trace as start_trace
from plait_inspect.profiler import stop_server as stop_server
from plait_inspect.profiler import stop_trace as stop_trace
from plait_inspect.profiler import trace as trace
