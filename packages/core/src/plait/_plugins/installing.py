"""Commands that install a distribution of the project, for messages.

Installers record the source of a distribution in its metadata (`direct_url.json`): a folder, a
wheel, or a repository; a distribution of a package index has no record.  The other distributions of
the project are found at the same source.  So a message about a missing one names a command that
works here, whether or not the project is published on an index.

Invariant: a command names a path only if that path exists.
"""

import importlib
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .._base.errors import MissingPlugin

CORE = "plait-core"


def library(name: str, does: str, distribution: str, extra: str) -> Any:
    """Import a module of a library that an extra of a distribution requires, and return it.

    Args:
      name: the module, with dots.
      does: the function that needs it and its use, such as "on_ray starts actors of Ray".
      distribution, extra: the distribution of the function, and its extra.

    Raises MissingPlugin if the library is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        # A folder of the same name, in which Python runs, is a package without modules.
        if (e.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise MissingPlugin(
            f"{does}, which is not installed",
            fix=lambda: install_command(distribution, extra=extra),
            distribution=distribution,
        ) from None


def install_command(*distributions: str, extra: str = "") -> str:
    """Return the command that installs distributions from the source of `plait-core`, with an extra
    of each."""
    return install_command_from(_origin(), *distributions, extra=extra)


def install_command_from(
    origin: dict[str, Any] | None, *distributions: str, extra: str = ""
) -> str:
    """Return the command for an origin: the contents of `direct_url.json`, or None for an index."""
    extras = f"[{extra}]" if extra else ""
    distributions = tuple(d + extras for d in distributions)
    needs = [_requirement(d, origin) for d in distributions]
    command = f"python -m pip install {' '.join(map(_quoted, needs))}"
    if origin is None or "vcs_info" in origin or not set(needs) & set(distributions):
        return command
    return f"{command}   (from the source of {CORE}: {origin['url']})"


def _origin() -> dict[str, Any] | None:
    """Return the recorded source of `plait-core`; None for an index, or without a record."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(CORE).read_text("direct_url.json")
        found = json.loads(text) if text else None
        return found if isinstance(found, dict) and isinstance(found.get("url"), str) else None
    except (PackageNotFoundError, OSError, ValueError):
        return None


def _requirement(by_name: str, origin: dict[str, Any] | None) -> str:
    """Return a requirement at an origin; the name alone if the distribution is not there."""
    distribution, bracket, extra = by_name.partition("[")
    extra = bracket + extra
    if origin is None:
        return by_name
    folder = distribution.removeprefix("plait-")
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        place = f"{vcs.get('vcs', 'git')}+{origin['url']}@{vcs.get('commit_id', 'HEAD')}"
        return f"{distribution}{extra} @ {place}#subdirectory=packages/{folder}"
    source = urlsplit(origin["url"])
    if source.scheme != "file":
        return by_name
    path = Path(url2pathname(source.path))
    if "dir_info" in origin:
        sibling = path.parent / folder
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"{editable}{sibling}{extra}" if (sibling / "pyproject.toml").is_file() else by_name
    wheels = sorted(path.parent.glob(f"{distribution.replace('-', '_')}-*.whl"))
    return f"{wheels[-1]}{extra}" if wheels else by_name


def _quoted(need: str) -> str:
    """Return a requirement as a shell takes it."""
    option = "-e " if need.startswith("-e ") else ""
    need = need.removeprefix(option)
    # Double quotes also hold in the shells of Windows, where single ones are part of the word.
    bare = shlex.quote(need) == need
    return option + (need if bare else f'"{need}"')
