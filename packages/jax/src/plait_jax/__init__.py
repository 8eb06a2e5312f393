"""JAX's names on Plait: libraries written for JAX run unmodified, without jax.

    import plait_jax
    plait_jax.install()  # before the first `import jax`

    import jax           # Plait's modules, by JAX's names
    import optax         # whatever imports jax

`python -m plait_jax script.py` runs a script so, and PLAIT_JAX=1 every Python of an environment.

Invariant: importing this imports neither Plait nor anything by the name of jax.
"""

from typing import TYPE_CHECKING, Any

from .finder import VERSION, install, installed, part, uninstall

if TYPE_CHECKING:
    from .mentions import report
    from .requests import MissingName

__all__ = ["VERSION", "MissingName", "install", "installed", "report", "uninstall"]

_LATE = {"report": "mentions", "MissingName": "requests"}
"""Names that need Plait, and the modules that have them."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(part(_LATE[name]), name)
