"""How familiar an image is: the share of held-out images that are more unlike those that the model knows.

It is a conformal p-value (Vovk et al. 2005): of images like the held-out ones, at most the share s has a familiarity of
s or less. Each held-out image was compared with others alone, as a new one is with all; with few images, these are
nearer. Images of some labels are more unlike than those of others, as labels with few images are. So each is judged by
how much more unlike it is than the images of its label, and no label is turned away more often than others.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from app.bundle import Bundle, HeldOut
from app.errors import UnfamiliarImage
from app.inference.engine import Outputs

NO_IMAGES = (
    "this bundle does not know its images: export it from a checkpoint of `vit-serve fit`, or with --pictures. Then "
    "results have `familiarity`"
)


@dataclass(frozen=True, kw_only=True)
class Familiarity:
    held_out: HeldOut

    def of(self, outputs: Outputs, *, least: float = 0.0) -> float:
        """From 1 / (n + 1) to 1, by the outputs of a graph for an image. Raises UnfamiliarImage below `least`."""
        offset = self.held_out.offsets.get(int(np.argmax(outputs["logits"])), 0.0) if "logits" in outputs else 0.0
        others = self.held_out.unlike
        as_unlike = len(others) - bisect_left(others, float(outputs["unlike"][0]) - offset)
        familiarity = (1 + as_unlike) / (1 + len(others))
        if familiarity < least:
            raise UnfamiliarImage.below(least, familiarity)
        return familiarity


def open_familiarity(bundle: Bundle) -> Familiarity | None:
    """None if the bundle does not know its images."""
    return Familiarity(held_out=bundle.manifest.held_out) if bundle.manifest.held_out else None
