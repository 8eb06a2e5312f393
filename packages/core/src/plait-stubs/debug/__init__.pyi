# Written by docs/stubs.py from `plait.debug` and the entry points of the plugins: do not edit.

from plait._jit.leaks import checking_leaks as checking_leaks
from plait._jit.purity import checking_purity as checking_purity
from typing import Any
from collections.abc import Callable
from collections.abc import Generator
from contextlib import contextmanager
from plait_inspect.breakpoints import breakpoint as breakpoint
from plait_sharding import inspect_array_sharding as inspect_array_sharding
from plait_inspect.progress_bars import progress as progress
from plait_sharding import visualize_array_sharding as visualize_array_sharding
from plait_sharding import visualize_sharding as visualize_sharding

def callback(callback: Callable[..., Any], *args: object, ordered: bool=False, partitioned: bool=False, **kwargs: object) -> None:
    """Call `callback(*args, **kwargs)` in Python when the arguments are computed."""
    ...
def log(fmt: str, *args: object, ordered: bool=False, partitioned: bool=False, skip_format_check: bool=False, **kwargs: object) -> None:
    """Write `fmt.format(*args, **kwargs)` to the log `plait` (level INFO) when the arguments are computed; see `print`."""
    ...
def print(fmt: str | None=None, *args: object, ordered: bool=False, partitioned: bool=False, skip_format_check: bool=False, file: object=None, **kwargs: object) -> Callable[..., None] | None:
    """Print `fmt.format(*args, **kwargs)` when the arguments are computed."""
    ...
@contextmanager
def nans() -> Generator[None, None, None]:
    """Make it an error, inside the `with` block, for an operation to give nan for operands without nan."""
    ...
@contextmanager
def infs() -> Generator[None, None, None]:
    """Make it an error, inside the `with` block, for an operation to give an infinity for finite operands; see `nans`."""
    ...
