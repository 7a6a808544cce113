"""export/embeddings.py: of an engine whose every answer is known."""

import numpy as np
import pytest
import torch

from export.agreement import of_both
from export.embeddings import likeness
from export.image_spec import image_spec
from export.images import drawn_images
from export.reference import normalised
from tests.support.toy import toy_checkpoint


class Torch:
    """The model itself, with noise of this share of each embedding."""

    def __init__(self, checkpoint, *, noise):
        self.checkpoint, self.noise, self.rng = checkpoint, noise, np.random.default_rng(0)

    @torch.no_grad()
    def run(self, graph, images):
        assert graph == "classify"
        exact = self.checkpoint.model(normalised(images, self.checkpoint)).numpy()
        noise = self.rng.normal(size=exact.shape) * np.linalg.norm(exact, axis=1, keepdims=True)
        return {"embedding": exact + (self.noise * noise / exact.shape[1] ** 0.5).astype(np.float32)}


def test_embeddings_are_compared_and_a_bundle_that_is_far_off_is_refused():
    toy = toy_checkpoint(num_classes=0)
    images = drawn_images(image_spec(toy.preprocessing), labels=())

    def measure(noise):
        return likeness(of_both(toy, images, Torch(toy, noise=noise)), images)

    same, near = measure(0), measure(0.1)
    assert (same.pictures, same.neighbours) == (96, 1)
    assert same.cosine_least == pytest.approx(1)
    assert near.cosine_least < near.cosine_mean == pytest.approx(0.995, abs=0.001)
    assert near.neighbours < 1
    with pytest.raises(ValueError, match=r"mean cosine of 0\.9.* 0\.99 is the least"):
        measure(0.3)
