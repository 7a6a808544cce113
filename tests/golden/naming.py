"""How the classes of real files are named: a table of lab/parity/README.md.

`python -m tests.golden.naming` writes it anew. Real files are too large to keep, so each row is a small file in its
library's real format, with as many classes as the published one, as `python -m export inspect` sees it.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from model.checkpoints.families.native import save
from model.checkpoints.imagenet import names_of, version_of
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import (
    GOLDEN,
    Write,
    backbone_and_head,
    google_file,
    hub_folder,
    stated,
    torch_file,
    training_file,
)
from tests.support.toy import toy_checkpoint

PAGE = Path("lab/parity/README.md")
COLUMNS = ("file", "classes", "first label", "where the names are from", "WordNet ids", "score")


class Row(NamedTuple):
    file: str  # in words
    write: Write
    classes: int
    case: str = ""  # whose facts are to be set


def tagged(tag: str) -> Write:
    config = json.loads((GOLDEN / "timm-plain/config.json").read_text())["pretrained_cfg"]
    return hub_folder("timm-plain", pretrained_cfg=config | {"tag": tag})


def numbered(names: Sequence[str], *, left_out: tuple[int, ...] = ()) -> dict[str, str]:
    return {str(number): name for number, name in enumerate(names) if number not in left_out}


def native(folder: Path, classes: int) -> Path:
    save(toy_checkpoint(), folder / "x.safetensors")
    return folder / "x.safetensors"


def rows() -> list[Row]:
    thousand, google = (version_of(classes).wordnet for classes in (1000, 21843))
    tuned = numbered(["cat", *(f"breed {i}" for i in range(1, 1000))])
    beit = numbered(names_of(google), left_out=(9205, 15027))
    named = {"label_names": thousand, "label_descriptions": dict(zip(thousand, names_of(thousand), strict=True))}
    dino = backbone_and_head("dino-four-blocks", "linearweights.pth", prefix="module.linear.")
    dinov2 = backbone_and_head("dinov2", "linear_head.pth")
    return [
        Row("Google npz, ImageNet-21k (`augreg`, `B_16.npz`)", google_file, 21843),
        Row("Google npz, fine-tuned on ImageNet (`B_16-…--imagenet2012-….npz`)", google_file, 1000),
        Row("Google npz, fine-tuned on CIFAR-100 (`B_16-…--cifar100-….npz`)", google_file, 100),
        Row("timm folder, `augreg_in21k`", tagged("augreg_in21k"), 21843),
        Row("timm folder, `augreg_in21k_ft_in1k`", tagged("augreg_in21k_ft_in1k"), 1000),
        Row("timm folder, `in21k` of 21k-P (`vit_base_patch16_224_miil`)", tagged("in21k"), 11221),
        Row("timm folder, iNaturalist 2021, without `label_names`", tagged("augreg_inat21"), 10000),
        Row("timm folder with `label_names` and `label_descriptions`", hub_folder("timm-plain", **named), 1000),
        Row("timm `train.py`, `model_best.pth.tar`", training_file("vit_tiny_patch16_224"), 1000, "timm-lone"),
        Row("Hugging Face folder with `id2label`", hub_folder("huggingface-vit", id2label=tuned), 1000),
        Row("Hugging Face folder with `LABEL_0`, `LABEL_1`, …", hub_folder("huggingface-vit"), 1000),
        Row("Hugging Face folder, BEiT of ImageNet-22k", hub_folder("huggingface-vit", id2label=beit), 21841),
        Row("torchvision, `vit_b_16`", torch_file("torchvision-vit", "heads.head"), 1000, "torchvision-vit"),
        Row("facebookresearch, DeiT", torch_file("deit", "head"), 1000, "deit"),
        Row("facebookresearch, DINO with its linear head", dino, 1000, "dino-four-blocks"),
        Row("facebookresearch, DINOv2 with its linear head", dinov2, 1000, "dinov2"),
        Row("vit-pytorch", torch_file("vit-pytorch-1.9.2-mean", "mlp_head"), 10, "vit-pytorch-1.9.2-mean"),
        Row("this project's own", native, 7),
    ]


def cells(row: Row) -> tuple[str, ...]:
    """All but the first."""
    with TemporaryDirectory() as folder:
        overrides = stated(row.case) if row.case else {}
        description = describe_checkpoint(row.write(Path(folder), row.classes), overrides=overrides)
    assert len(description.labels) == row.classes
    first, wordnet = description.labels[0], "yes" if description.wordnet else "no"
    return f"{row.classes:,}", first, description.labels_from or "the file's metadata", wordnet, description.score


def table() -> str:
    """Files that have all cells in common are in one row."""
    files: dict[tuple[str, ...], list[str]] = {}
    for row in rows():
        files.setdefault(cells(row), []).append(row.file)
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(("; ".join(alike), *others) for others, alike in files.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(re.sub(r"(<!-- naming -->\n).*?(?=\n<!-- /naming -->)", rf"\g<1>{table()}", text, flags=re.DOTALL))
