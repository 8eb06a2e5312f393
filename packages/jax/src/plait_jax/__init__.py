"""JAX's names on Plait: libraries written for JAX run unmodified, without jax.

    import plait_jax
    plait_jax.install()  # before the first `import jax`

    import jax           # Plait's modules, by JAX's names
    import optax         # whatever imports jax

`python -m plait_jax script.py` runs one script this way, PLAIT_JAX=1 every Python process of an
environment.

Invariant: importing this package imports neither Plait nor any module named jax.
"""

from typing import TYPE_CHECKING, Any

from .finder import VERSION, install, installed, part, uninstall

if TYPE_CHECKING:
    from .mentions import report
    from .requests import MissingName

__all__ = ["VERSION", "MissingName", "install", "installed", "report", "uninstall"]

_LATE = {"report": "mentions", "MissingName": "requests"}
"""Names that need Plait, and the modules that define them."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(part(_LATE[name]), name)
