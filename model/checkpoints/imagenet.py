"""The classes of ImageNet's versions, by their number and by the WordNet ids of their synsets.

lab/golden/make_labels.py writes imagenet.json.gz from timm and torchvision, and the file says of which releases;
imagenet_licences.txt has their licences. Names are torchvision's for ImageNet-1k and WordNet's for the rest, and no two
synsets share one.
"""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("imagenet.json.gz")


class Version(NamedTuple):
    name: str  # such as ImageNet-1k
    wordnet: tuple[str, ...]  # ids such as n02099601, in the order of the classes


def version_of(classes: int) -> Version | None:
    """The version with this number of classes; no two have the same."""
    table = _table()
    places = {len(steps): (name, accumulate(steps)) for name, steps in table["versions"].items()}
    if classes not in places:
        return None
    name, numbers = places[classes]
    return Version(name, tuple(table["wordnet"][i] for i in numbers))


def names_of(wordnet: Sequence[str]) -> tuple[str, ...] | None:
    """The names of these synsets, such as golden retriever. None unless all of them are in the table."""
    if not wordnet or not all(name[:1] == "n" and name[1:].isdigit() for name in wordnet):
        return None
    table = _table()
    names = dict(zip(table["wordnet"], table["names"], strict=True))
    return tuple(names[name] for name in wordnet) if names.keys() >= set(wordnet) else None


@cache
def _table() -> dict[str, Any]:
    return json.loads(gzip.decompress(TABLE.read_bytes()))
