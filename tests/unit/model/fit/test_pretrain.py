"""model/fit/pretrain.py: networks of every kind of position learn from nothing."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from model.fit.augment import Augmentation
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.network import initialised
from model.fit.pretrain import PretrainRecipe, pretrain
from model.variants import POSITIONS, variant
from tests.support.runs import same_weights
from tests.support.samples import PREPROCESSING, SIZE, squares

TRAIN, HELD_OUT = squares(60), squares(30, seed=1)
CONFIG = variant("mu/8", image_size=SIZE)
RECIPE = PretrainRecipe(rate=0.003, epochs=2, batch=16, augmentation=Augmentation(least_area=0.5, flip=True))


def run(config=CONFIG, recipe=RECIPE):
    return pretrain(config, PREPROCESSING, TRAIN, HELD_OUT, recipe)


def test_a_network_learns_from_nothing_and_is_fine_tuned():
    fitted = run(recipe=replace(RECIPE, epochs=20, dropout=0.0))
    assert fitted.history[-1].accuracy > 0.6
    assert fitted.model.config == variant("mu/8", image_size=SIZE, num_classes=3, representation_size=32)
    recipe = FinetuneRecipe(rates=(0.001,), epochs=1, batch=16)
    tuned = finetune(fitted.model, PREPROCESSING, TRAIN, HELD_OUT, recipe)
    assert tuned.model.pre_logits is None


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name):
    fitted = run(variant("mu/8", image_size=SIZE, **POSITIONS[name]), replace(RECIPE, epochs=0.5))
    start = initialised(fitted.model.config, RECIPE.seed)
    still = {n for n, p in fitted.model.named_parameters() if torch.equal(p, start.get_parameter(n))}
    assert still == set()  # every parameter has learned
    assert len(fitted.history) == 2


def test_the_hidden_layer_of_the_head_is_optional():
    assert run(recipe=replace(RECIPE, epochs=0.25, hidden_head=False)).model.pre_logits is None


def test_dropout_is_in_the_loss_and_not_in_measurements():
    without, with_dropout = (run(recipe=replace(RECIPE, rate=0.0, dropout=share)) for share in (0.0, 0.9))
    assert without.history[0].train_loss != with_dropout.history[0].train_loss
    assert without.history[-1].held_out_loss == with_dropout.history[-1].held_out_loss


def test_the_seed_alone_decides():
    whole = run()
    torch.rand(5)  # the random numbers of others do not count
    assert same_weights(run().model, whole.model)
    assert not same_weights(run(recipe=replace(RECIPE, seed=1)).model, whole.model)
    assert json.loads(json.dumps(whole.recipe)).keys() == {"method", *asdict(RECIPE)}
