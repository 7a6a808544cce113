"""`python -m model.demo`: the recipe runs, what it learns from is right, and held-out images lie under their labels."""

import sys
from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from model.demo.__main__ import main
from model.demo.evaluate import evaluate, patches_on_object
from model.demo.train import CONFIG, Dataset, Recipe, batches, draw_dataset, train
from model.shapes import LABELS, held_out
from model.vit import VisionTransformer
from tests.support.runs import same_weights

RECIPE = Recipe(images=40, steps=4, batch=16, warm_up=2)


def test_turning_and_flipping_moves_pixels_and_mask_together():
    covered = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (64, 8, 8), dtype=np.uint8))
    pixels = (covered * 255).repeat_interleave(8, 1).repeat_interleave(8, 2)[:, None].expand(-1, 3, -1, -1)
    data = Dataset(pixels=pixels, labels=torch.arange(64), covered=covered)
    stream = batches(data, Recipe(batch=64))
    turned = 0
    for _ in range(20):
        seen, labels, moved = next(stream)
        as_patches = (seen[:, 0, ::8, ::8] == 255).flatten(1)
        inverted = not torch.equal(as_patches, moved.bool())
        assert torch.equal(as_patches ^ inverted, moved.bool())
        turned += not torch.equal(moved, covered.flatten(1)[labels])
    assert turned > 10


def test_the_recipe_decides_the_weights(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # there is one chunk
    data = draw_dataset(RECIPE)  # of which an epoch has three batches
    whole = train(RECIPE, data=data)
    assert not whole.training
    assert same_weights(train(RECIPE, data=data), whole)
    assert not same_weights(train(replace(RECIPE, steps=1), data=data), whole)


def test_patches_on_object_are_those_with_a_covered_centre_or_half():
    mask = torch.zeros(1, 16, 16, dtype=torch.uint8)
    mask[0, 0:4, 0:8] = 255  # half of the first patch, not its centre
    mask[0, 11:14, 11:14] = 255  # a speck on the centre of the last one
    mask[0, 8:10, 0:2] = 255  # a corner of the third
    assert patches_on_object(mask, 8).tolist() == [[True, False, False, True]]


def test_an_untrained_model_is_at_chance():
    torch.manual_seed(0)
    figures = evaluate(VisionTransformer(CONFIG).eval(), count=100)
    assert figures["top1_accuracy"] < 0.25
    assert 0.1 < figures["chance_on_object"] < 0.3


def test_images_are_those_held_out_under_their_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["python -m model.demo", "images", str(tmp_path / "shapes"), "--count", "20"])
    main()
    files = sorted((tmp_path / "shapes").rglob("*.png"), key=lambda path: path.name)
    assert len(files) == 20
    for file, sample in zip(files, held_out(20), strict=True):
        assert file.parent.name == LABELS[sample.label]
        assert (np.asarray(Image.open(file)) == sample.pixels).all()
