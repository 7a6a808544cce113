"""A network of the paper that has learned nothing yet, as if it were a checkpoint without weights."""

from model.checkpoints.checkpoint import Description
from model.checkpoints.families.native import FAMILY
from model.fit.pretrain import POSITIONS
from model.preprocessing import Preprocessing
from model.variants import variant

IMAGE_SIZE = "224,224"  # pixels
MIDDLE = (0.5, 0.5, 0.5)  # pixels become numbers from -1 to 1, as in vit_jax


def scratch(name: str, *, image_size: str | None, positions: str) -> Description:
    """A variant such as "S/16", for images of "height,width" pixels. Raises ValueError for one that there is not."""
    height, width = (int(side) for side in (image_size or IMAGE_SIZE).split(","))
    size = height, width
    return Description(
        name=name,
        family=FAMILY,
        architecture="vit",
        config=variant(name, image_size=size, num_classes=0, **POSITIONS[positions]),
        preprocessing=Preprocessing(
            size=size,
            resize_mode="shortest",
            resize_size=size,
            crop="center",
            interpolation="bilinear",
            mean=MIDDLE,
            std=MIDDLE,
        ),
    )
