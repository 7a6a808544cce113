"""A person's image as the report shows it."""

from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from app.drawing.colors import limits
from app.drawing.heatmap import Style, draw
from app.images.preparer import Preparer, thumbnail_of
from app.images.preprocess import PreprocessedImage
from export.folder import LIMITS
from export.image_spec import image_spec
from model.preprocessing import Preprocessing

SIDE = 256  # pixels of the longer side


def thumbnails(files: Iterable[Path], preprocessing: Preprocessing) -> list[bytes]:
    """A JPEG of each."""
    return [shown_image(file, preprocessing).thumbnail for file in files]


def shown_image(file: Path, preprocessing: Preprocessing) -> PreprocessedImage:
    """As the service prepares it, with a thumbnail to draw on."""
    preparer = Preparer(limits=LIMITS, spec=image_spec(preprocessing), thumbnail_px=SIDE)
    return to_draw_on(preparer.prepare(file.read_bytes(), thumbnail=True))


def drawn(values: npt.NDArray[np.float32], image: PreprocessedImage, *, signed: bool) -> bytes:
    """A PNG of a map (rows, columns) on its image, in colours up to its own limit without outliers."""
    return draw(values, image, Style(), limits(values, values, "robust", signed=signed))


def to_draw_on(image: PreprocessedImage) -> PreprocessedImage:
    """With a thumbnail of SIDE pixels, which is enlarged if need be, so that maps are smooth on it."""
    thumbnail = ImageOps.contain(Image.open(BytesIO(image.thumbnail)), (SIDE, SIDE))
    return replace(image, thumbnail=thumbnail_of(thumbnail, SIDE))
