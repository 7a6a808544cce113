"""The extras of this package: what an installation may lack, and how to have it."""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import quote


def check_export() -> None:
    """Exits with 1 where what an export needs is not installed."""
    if not find_spec("torch"):
        sys.exit(f"not exported: PyTorch is missing, which the extra export has: {installing('export')}")


def installing(extra: str) -> str:
    """The command that adds an extra to this package, from where it came (PEP 610): no index may have it."""
    name = f"vit-serve[{extra}]"
    try:
        origin = json.loads(distribution("vit-serve").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # a clone
        origin = {"url": Path(__file__).parents[1].as_uri()}
    if "vcs_info" in origin:
        name += " @ {vcs_info[vcs]}+{url}@{vcs_info[commit_id]}".format(**origin)
    elif origin:
        name += f" @ {origin['url']}"
    return f"pip install {quote(name)}"
