"""The demo bundle under another name, and so with another digest: a second model without an export."""

import json
import shutil
from pathlib import Path

from app.bundle import MANIFEST
from app.settings import DEMO_BUNDLE


def demo_named(name: str, folder: Path) -> Path:
    bundle = Path(shutil.copytree(DEMO_BUNDLE, folder / name))
    manifest = json.loads((bundle / MANIFEST).read_text())
    (bundle / MANIFEST).write_text(json.dumps(manifest | {"name": name}))
    return bundle
