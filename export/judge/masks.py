"""Where the object is: a person's masks, which have the names of the images, as the network would see them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from app.bundle import Manifest
from app.errors import UnsupportedType, UnusableImage
from app.images.colors import upright_rgb
from app.images.decode import opened
from app.images.preprocess import preprocess
from app.images.source import read_file
from app.inference.engine import Pixels
from export.folder import LIMITS
from export.walk import SUFFIXES, walk

LIGHT = 128  # from here to 255 a mask says that the object is there
HALF = 0.5  # of a patch

Patches = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Masks:
    """Images with the names of others; their suffixes may differ."""

    files: dict[Path, Path]  # by the name of the image without its suffix, relative to its folder
    manifest: Manifest

    @classmethod
    def of(cls, folder: Path, manifest: Manifest) -> Self:
        found = [file for file in walk(folder).files if file.suffix.lower() in SUFFIXES]
        return cls(files={file.relative_to(folder).with_suffix(""): file for file in found}, manifest=manifest)

    def on_object(self, name: Path, size: tuple[int, int]) -> Patches | None:
        """(patches,), of the image of this name, relative to its folder, and `size` (width, height). None where there
        is no mask, or no part of the object is in the crop. Raises ValueError for a mask that is not of this image.
        """
        file = self.files.get(name.with_suffix(""))
        if file is None:
            return None
        try:
            with opened(read_file(file), LIMITS) as (image, _):
                mask = upright_rgb(image)
        except (UnsupportedType, UnusableImage) as error:
            raise ValueError(f"{file}: {error.detail}") from None
        if mask.size != size:
            raise ValueError(f"{file} has {mask.width} x {mask.height} pixels, and its image {size[0]} x {size[1]}")
        return patches_on(preprocess(mask, self.manifest.image)[0], self.manifest)


def patches_on(mask: Pixels, manifest: Manifest) -> Patches | None:
    """(patches,), those on the object of a mask as the network would see it. None where there is nothing of it.

    A patch is on the object if half of it is, or as much as of any other.
    """
    (rows, columns), side = manifest.tokens.grid, manifest.tokens.patch
    light = mask.max(axis=2).reshape(rows, side, columns, side) >= LIGHT
    shares = light.mean(axis=(1, 3)).ravel()
    return shares >= min(HALF, shares.max()) if shares.any() else None
