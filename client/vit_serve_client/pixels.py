"""Images in memory as files: of PIL, and arrays."""

from io import BytesIO
from typing import Any


def png(image: Any) -> bytes:
    """A PNG of a PIL image, or of a uint8 array (rows, columns), with 3 or 4 channels last.

    Raises TypeError for anything else.
    """
    from PIL import Image

    if not isinstance(image, Image.Image):
        kind = str(getattr(image, "dtype", type(image).__name__))
        shape = tuple(getattr(image, "shape", ()))
        if kind not in ("uint8", "torch.uint8") or not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))):
            raise TypeError(
                f"an image is bytes, a path, a PIL image or a uint8 array of rows, columns and 3 channels, not {kind} "
                f"{shape or ''}".rstrip()
            )
        image = Image.fromarray(_array(image))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):  # which PNG has
        image = image.convert("RGB")
    file = BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _array(image: Any) -> Any:
    import numpy as np

    return np.asarray(image)
