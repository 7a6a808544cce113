"""Writes model/checkpoints/imagenet.json.gz, the classes of ImageNet's versions, from timm and torchvision.

`python lab/golden/make_labels.py` where both are installed, as for `make parity`; neither is imported. The licences
of their files and of WordNet are in imagenet_licences.txt beside the table.
"""

import gzip
import json
import runpy
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

TABLE = Path("model/checkpoints/imagenet.json.gz")
VERSIONS = {  # timm's data/imagenet_info.py says what each is
    "ImageNet-1k": "imagenet_synsets.txt",
    "ImageNet-21k-P (Winter 2021)": "imagenet21k_miil_w21_synsets.txt",
    "ImageNet-21k-P": "imagenet21k_miil_synsets.txt",
    "ImageNet-12k": "imagenet12k_synsets.txt",
    "ImageNet-22k": "imagenet22k_synsets.txt",
    "ImageNet-22k in Microsoft's order": "imagenet22k_ms_synsets.txt",
    "ImageNet-21k": "imagenet21k_goog_synsets.txt",
}


def main() -> None:
    info = folder("timm") / "data" / "_info"
    versions = {name: (info / file).read_text().split() for name, file in VERSIONS.items()}
    categories = runpy.run_path(str(folder("torchvision") / "models" / "_meta.py"))["_IMAGENET_CATEGORIES"]
    short = dict(zip(versions["ImageNet-1k"], categories, strict=True))
    named = names(short, *(tabbed(info / f"imagenet_synset_to_{what}.txt") for what in ("lemma", "definition")))
    place = {wordnet: i for i, wordnet in enumerate(named)}
    table = {
        "source": f"timm {version('timm')}, torchvision {version('torchvision')}",
        "wordnet": list(named),
        "names": list(named.values()),
        "versions": {name: steps([place[wordnet] for wordnet in ids]) for name, ids in versions.items()},
    }
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    TABLE.write_bytes(gzip.compress(text, mtime=0))
    print(f"{TABLE}: {len(named)} names, {TABLE.stat().st_size} bytes")


def folder(package: str) -> Path:
    return Path(find_spec(package).submodule_search_locations[0])


def tabbed(path: Path) -> dict[str, str]:
    pairs = (line.split("\t") for line in path.read_text().splitlines())
    return {wordnet: text.strip() for wordnet, text in pairs}


def names(short: dict[str, str], lemmas: dict[str, str], definitions: dict[str, str]) -> dict[str, str]:
    """A different name for each synset: torchvision's, else its first lemma; where another has it, all its lemmas;
    where another has these too, also its definition.
    """
    named = dict(short)
    for name in (
        lambda wordnet: lemmas[wordnet].partition(",")[0],
        lambda wordnet: lemmas[wordnet],
        lambda wordnet: f"{lemmas[wordnet]}: {definitions[wordnet]}",
    ):
        rest = {wordnet: name(wordnet) for wordnet in lemmas if wordnet not in named}
        count = Counter([*named.values(), *rest.values()])
        named |= {wordnet: text for wordnet, text in rest.items() if count[text] == 1}
    return {wordnet: named[wordnet] for wordnet in sorted(lemmas)}


def steps(places: list[int]) -> list[int]:
    """Differences between neighbours, which compress well: most are 1."""
    return [place - before for before, place in zip([0, *places], places, strict=False)]


if __name__ == "__main__":
    main()
