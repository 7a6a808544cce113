"""Parts of the pages in docs/ that have a name."""

import re
from pathlib import Path


def block(name: str, page: Path) -> str:
    """What stands between the comments that name a part of a page."""
    (found,) = re.findall(rf"<!-- {name} -->\n(.*?)\n *<!-- /{name} -->", page.read_text(), re.DOTALL)
    return str(found)
