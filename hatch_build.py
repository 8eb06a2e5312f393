"""The README of the meta-distribution, with links that hold where a package index shows it.

Links within the tree are relative in `README.md`, so that they hold in every checkout.

Invariant: the README of the distribution is `README.md`, but for these links.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Give the metadata the README, its relative links made absolute by the URL of the source."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme` to the metadata."""
        start = f"{metadata['urls']['Source']}/blob/main/"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!https?://|#)", f"]({start}", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
