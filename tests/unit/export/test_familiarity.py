"""export/familiarity.py: which images a bundle knows, and that new ones like them are familiar."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from app.inference.engine import Pixels
from app.inference.familiarity import Familiarity
from export.agreement import of_both
from export.familiarity import FEWEST, brought, held_out, learn, of_folder
from export.images import Images
from model.fit.groups import near_copies
from tests.support.familiar import knowing
from tests.support.toy import toy_checkpoint

FEATURES, LABELS = 100, 3
MEANS = np.random.default_rng(0).normal(0, 1, (LABELS, FEATURES))
TOY = toy_checkpoint(depth=1)
KNOWING = knowing(TOY)
RESIZED = dataclasses.replace(KNOWING, known=dataclasses.replace(KNOWING.known, changed_by=("image_size",)))


def images(counts: tuple[int, ...], *, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of so many images of each label, in any order."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(range(LABELS), counts))
    return torch.from_numpy(MEANS[classes] + rng.normal(0, 1, (len(classes), FEATURES))), torch.from_numpy(classes)


def familiarities(features, classes, others, of_others, *, learned=0, groups=None) -> np.ndarray:
    groups = torch.arange(len(features)) if groups is None else groups
    known = learn(features, classes, learned=learned, groups=groups)
    familiarity, logits = Familiarity(held_out=held_out(known)), np.eye(LABELS)[of_others]
    unlike = known.unlike(others.float()).numpy()
    return np.array([familiarity.of({"unlike": u, "logits": label}) for u, label in zip(unlike, logits, strict=True)])


@pytest.mark.parametrize("learned", [0, 40])
def test_of_images_like_the_held_out_ones_a_share_is_less_familiar_than_that_share(learned):
    """Of each set another share; their mean is what was promised."""
    promised = np.array([0.05, 0.2, 0.5])
    found = [
        familiarities(*images((40, 40, 40), seed=seed), *images((20, 20, 20), seed=100 + seed), learned=learned)
        for seed in range(10)
    ]
    below = [(np.concatenate(found) <= share).mean() for share in promised]
    assert (below <= promised + 0.015).all()
    assert (below >= 0.3 * promised).all()  # with few images it is less: the others are fewer by a fold


def test_what_is_unlike_has_the_least_familiarity_whatever_its_label():
    strange = images((20, 20, 20), seed=2)
    found = familiarities(*images((60, 30, 10), seed=1), 4 * strange[0].flip(1), strange[1])
    assert found.max() == pytest.approx(1 / 101)


def test_a_rare_label_is_not_turned_away_more_often_than_others():
    found = {label: [] for label in range(LABELS)}
    for seed in range(10):
        others, of_others = images((30, 30, 30), seed=100 + seed)
        shares = familiarities(*images((90, 90, 12), seed=seed), others, of_others)
        for label, below in found.items():
            below.append((shares[of_others == label] <= 0.05).mean())
    assert max(np.mean(below) for below in found.values()) < 0.08


def test_an_image_is_not_compared_with_its_near_copies():
    """With them, new images would be turned away several times as often."""
    features, classes = images((41, 41, 41), seed=5)
    copies = features + 0.05 * torch.from_numpy(np.random.default_rng(6).normal(0, 1, features.shape))
    twice, of_twice = torch.cat([features, copies]), torch.cat([classes, classes])
    others = images((100, 100, 100), seed=7)
    groups = near_copies(twice, of_twice)
    assert len(groups.unique()) == len(features)
    below = {
        name: (familiarities(twice, of_twice, *others, groups=of) <= 0.05).mean()
        for name, of in {"together": groups, "apart": None}.items()
    }
    assert below["together"] < 0.08 < 0.2 < below["apart"]


class Means:
    """The mean of each colour in place of features."""

    def run(self, graph: str, images: Pixels) -> dict[str, np.ndarray]:
        assert graph == "classify"
        means = images.mean((1, 2)).astype(np.float32)
        return {"unlike": means, "logits": np.eye(7, dtype=np.float32)[means.argmax(1)]}


def test_a_persons_images_are_known_by_the_bundles_own_features():
    pixels = np.random.default_rng(0).integers(0, 256, (FEWEST + 10, 24, 40, 3), dtype=np.uint8)
    files = tuple(Path(f"{number}.jpg") for number in range(len(pixels)))
    given = Images(source="folder", ranges=pixels[:10], judged=pixels[10:], labels=None, files=files)
    known = of_folder(given, Means(), of_both(TOY, given, Means()))
    assert (known.pictures, len(known.held_out)) == (FEWEST + 10, FEWEST)
    assert known.unlike.mean.numpy() == pytest.approx(pixels.mean((0, 1, 2)), rel=1e-5)
    assert {*known.labels.tolist()} <= {0, 1, 2}


@pytest.mark.parametrize(
    ("checkpoint", "precision", "given", "said"),
    [
        (KNOWING, "fp32", True, None),
        (KNOWING, "fp16", False, None),
        (TOY, "int8", False, ""),
        (RESIZED, "fp32", False, "features with another image_size are others than those of the checkpoint."),
        (KNOWING, "int8", False, "features in int8 are others than those of the checkpoint."),
        (KNOWING, "bf16", True, ""),
    ],
)
def test_what_a_checkpoint_knows_is_taken_if_its_features_are_those_of_the_bundle(
    checkpoint, precision, given, said, capsys
):
    known = brought(checkpoint, precision, given=given)
    assert known is (KNOWING.known if said is None else None)
    err = capsys.readouterr().err
    assert err == (f"Familiarity is not measured: {said} Give --pictures FOLDER.\n" if said else "")


def test_too_few_are_not_known_and_the_reason_is_said(capsys):
    features, classes = images((20, 20, 10), seed=8)
    assert learn(features, classes, learned=11, groups=torch.arange(50)) is None
    assert capsys.readouterr().err == f"Familiarity is not measured: 39 images are held out, and {FEWEST} are needed.\n"
