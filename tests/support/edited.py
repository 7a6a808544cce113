"""Bundles with other facts in their manifest, and so with another digest: a second model without an export."""

import json
import shutil
from pathlib import Path
from typing import Any

from app.bundle import MANIFEST
from app.settings import DEMO_BUNDLE


def edit(bundle: Path, **changes: Any) -> None:
    """Change fields of the manifest, and of those that are objects again some fields; an empty object empties."""
    path = bundle / MANIFEST
    manifest = json.loads(path.read_text())
    for name, value in changes.items():
        manifest[name] = {**(manifest.get(name) or {}), **value} if value and isinstance(value, dict) else value
    path.write_text(json.dumps(manifest))


def copied(folder: Path, source: Path = DEMO_BUNDLE, **changes: Any) -> Path:
    """A copy of a bundle at `folder`, with these changes of its manifest."""
    shutil.copytree(source, folder)
    edit(folder, **changes)
    return folder


def demo_named(name: str, folder: Path) -> Path:
    return copied(folder / name, name=name)
