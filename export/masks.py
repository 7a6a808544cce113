"""Masks that lie beside their images: those of a segmentation, which are images too."""

import re
from collections.abc import Sequence
from pathlib import Path

from model.checkpoints.checkpoint import first_few

MASK = re.compile(r"(.+)[_ -](mask|segmentation|seg|gt)([_ -]?\d+)?", re.IGNORECASE)  # as in benign_1_mask.png


def about_masks(folder: Path, files: Sequence[Path]) -> list[str]:
    """The note on files in `folder` that are called as masks of others."""
    stems = {(file.parent, file.stem) for file in files}
    found = [(file, MASK.fullmatch(file.stem)) for file in files]
    masks = [file.name for file, mask in found if mask and (file.parent, mask[1]) in stems]
    return [f"{folder}: images that are called as masks of others are read too: {first_few(masks)}"] if masks else []
