"""export/familiarity.py: which images a bundle knows, of an engine whose every answer is known."""

import dataclasses

import numpy as np
import pytest
import torch

from app.inference.engine import Pixels
from export.agreement import of_both
from export.familiarity import FEWEST, known_images
from export.images import Images
from model.checkpoints.checkpoint import KnownImages
from tests.support.toy import toy_checkpoint

TOY = toy_checkpoint()
HELD_OUT = torch.randn(FEWEST, TOY.config.embedding, generator=torch.Generator().manual_seed(0))
BROUGHT = dataclasses.replace(TOY, known=KnownImages(learned=HELD_OUT[:3], held_out=HELD_OUT))
RESIZED = dataclasses.replace(BROUGHT, known=dataclasses.replace(BROUGHT.known, changed_by=("image_size",)))


class Means:
    """The mean of each colour in place of an embedding."""

    def run(self, graph: str, images: Pixels) -> dict[str, np.ndarray]:
        assert graph == "classify"
        return {"embedding": images.mean((1, 2)).astype(np.float32), "logits": np.zeros((len(images), 7), np.float32)}


def folder(judged: int) -> Images:
    pixels = np.random.default_rng(0).integers(0, 256, (judged + 10, 24, 40, 3), dtype=np.uint8)
    return Images(source="folder", ranges=pixels[:10], judged=pixels[10:], labels=None)


def known(checkpoint, precision, given):
    both = of_both(checkpoint, given, Means()) if given else None
    return known_images(checkpoint, precision, given, Means(), both)


def test_a_persons_images_are_known_by_the_bundles_own_embeddings():
    given = folder(FEWEST)
    for checkpoint, precision in ((TOY, "fp32"), (RESIZED, "fp32"), (BROUGHT, "int8"), (BROUGHT, "bf16")):
        found = known(checkpoint, precision, given)
        assert found.source == "folder"
        assert np.allclose(found.learned, given.ranges.mean((1, 2)))
        assert np.allclose(found.held_out, given.judged.mean((1, 2)))
        assert found.classes.tolist() == [0] * (10 + FEWEST)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_what_a_checkpoint_has_learned_comes_before_a_folder(precision):
    for given in (None, folder(FEWEST)):
        found = known(BROUGHT, precision, given)
        assert (found.source, len(found.learned)) == ("fit", 3)
        assert found.held_out.tolist() == HELD_OUT.tolist()
        assert len({*found.classes}) > 1


@pytest.mark.parametrize(
    ("checkpoint", "precision", "given", "said"),
    [
        (TOY, "fp32", None, ""),
        (TOY, "int8", None, ""),
        (TOY, "fp32", folder(FEWEST - 1), f"{FEWEST - 1} images are held out, and {FEWEST} are needed."),
        (
            RESIZED,
            "fp32",
            None,
            "embeddings with another image_size are others than those of the checkpoint. Give --pictures FOLDER.",
        ),
        (BROUGHT, "int8", None, "embeddings in int8 are others than those of the checkpoint. Give --pictures FOLDER."),
    ],
)
def test_without_enough_images_nothing_is_known_and_the_reason_is_said(checkpoint, precision, given, said, capsys):
    assert known(checkpoint, precision, given) is None
    *_, last = ["", *capsys.readouterr().err.splitlines()]
    assert last == (said and f"Familiarity is not measured: {said}")
