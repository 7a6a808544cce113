"""model/fit/masked.py: what is hidden, which colours are to be told, and that they are learned."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch

from model.fit.augment import Augmentation
from model.fit.batches import Batches
from model.fit.masked import COLOURS, ColourHead, Corruption, MaskedPatches, MaskedRecipe, masked, mean_colours
from model.fit.network import initialised
from model.fit.samples import Samples
from model.variants import variant
from tests.support.runs import same_weights
from tests.support.samples import PREPROCESSING, SIZE, squares

CONFIG = variant("mu/8", image_size=SIZE)
RECIPE = MaskedRecipe(rate=0.003, epochs=2, batch=16, augmentation=Augmentation(least_area=1, most_aspect=1))


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_mean_colours_have_three_bits_a_channel():
    pixels = torch.zeros(1, 3, 8, 16)
    pixels[0, :, :, 8:] = 255
    pixels[0, 0, :4, :8] = 64  # the mean is 32, the second level of red
    pixels[0, 2, :, :8] = 100  # the fourth of blue
    assert mean_colours(pixels, 8).tolist() == [[1 * 64 + 0 * 8 + 3, COLOURS - 1]]


def test_half_is_corrupted_as_the_paper_says():
    drawn = Corruption.draw(500, 60, chance(), torch.device("cpu"))
    corrupted, hidden = drawn.corrupted, drawn.hidden
    moved = (drawn.source != torch.arange(500 * 60)).view(500, 60)
    assert corrupted.float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert not (hidden & ~corrupted).any()
    assert not (moved & (hidden | ~corrupted)).any()
    assert hidden[corrupted].float().mean().item() == pytest.approx(0.8, abs=0.01)
    assert moved[corrupted].float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert Corruption.draw(1, 1, chance(), torch.device("cpu")).source.tolist() == [0]  # there is no other


def test_embeddings_become_the_mask_or_another_or_stay():
    drawn = Corruption.draw(4, 10, chance(), torch.device("cpu"))
    patches = torch.arange(40.0).view(4, 10, 1).expand(4, 10, 3)
    out = drawn.apply(patches, torch.full((3,), -1.0))
    expected = torch.where(drawn.hidden, -1, drawn.source.view(4, 10)).float()
    assert torch.equal(out, expected.unsqueeze(-1).expand(4, 10, 3))


def plain(count: int, seed: int) -> Samples:
    """Images of one colour, so that any patch tells that of all others."""
    colours = torch.tensor([[20, 20, 20], [250, 20, 20], [20, 250, 20], [20, 20, 250]], dtype=torch.uint8)
    rows = torch.randint(4, (count,), generator=chance(seed))
    pixels = colours[rows][:, None, None].expand(-1, *SIZE, -1).contiguous()
    return Samples(pixels=pixels, classes=torch.zeros(count, dtype=torch.int64))


def test_colours_of_hidden_patches_are_learned_from_the_others():
    fitted = masked(CONFIG, PREPROCESSING, plain(64, 0), plain(32, 1), replace(RECIPE, rate=0.01, epochs=60))
    assert fitted.figures["colour_accuracy"] > 0.85
    assert fitted.figures.keys() == {"loss", "colour_accuracy"}
    assert fitted.model.config == replace(CONFIG, num_classes=0)
    assert not fitted.model.patch_embed._forward_hooks  # nothing of it stays in the network


def test_the_embedding_of_hidden_patches_learns_and_the_step_decides_which_they_are():
    network, colours = initialised(replace(CONFIG, num_classes=0), 0), ColourHead(CONFIG.width)
    torch.nn.init.normal_(colours.linear.weight)
    batches = Batches(samples=squares(4), size=PREPROCESSING.size, batch=4, seed=0, augmentation=RECIPE.augmentation)
    objective = MaskedPatches(network, colours, PREPROCESSING, batches, None)
    objective.loss(0).backward()
    assert colours.mask.grad.abs().sum() > 0
    assert objective.measure() is None
    assert torch.equal(objective.loss(3), objective.loss(3))
    assert not torch.equal(objective.loss(3), objective.loss(4))


def test_the_seed_decides():
    whole, again = (masked(CONFIG, PREPROCESSING, squares(40), squares(10, seed=1), RECIPE) for _ in range(2))
    assert same_weights(whole.model, again.model)
    assert again.history[0].train_loss == pytest.approx(math.log(COLOURS))  # at first every colour is as likely
    assert json.loads(json.dumps(again.recipe)).keys() == {"method", *asdict(RECIPE)}
