"""model/fit/finetune.py and loop.py: what is learned, what is kept, and that interruptions change nothing."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from model.fit import finetune as finetuning
from model.fit.augment import Augmentation
from model.fit.classification import Classification
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.loop import Diverged
from model.fit.measure import measure
from model.fit.probe import ProbeRecipe, probe
from model.fit.samples import Samples
from model.variants import variant
from tests.support.runs import interrupted_at, same_weights
from tests.support.samples import PREPROCESSING, SIZE, squares
from tests.support.toy import toy_model

TRAIN, HELD_OUT = squares(60, contrast=60), squares(30, seed=1, contrast=60)  # a probe is often wrong
RECIPE = FinetuneRecipe(rates=(0.003,), epochs=3, batch=16, augmentation=Augmentation(least_area=0.5, flip=True))
STEPS = 12


@pytest.fixture(scope="module")
def start():
    return toy_model(variant("mu/8", image_size=SIZE, num_classes=7))


def run(start, recipe=RECIPE, work=None):
    return finetune(start, PREPROCESSING, TRAIN, HELD_OUT, recipe, work=work)


def test_it_learns(start):
    fitted = run(start, replace(RECIPE, rates=(0.01,), epochs=15))
    last = fitted.history[-1]
    assert last.accuracy > 0.9
    assert measure(fitted.model, HELD_OUT, PREPROCESSING).loss == pytest.approx(last.held_out_loss)
    assert not fitted.model.training
    assert last.train_loss < fitted.history[0].train_loss
    assert fitted.model.config == variant("mu/8", image_size=SIZE, num_classes=3, pool="cls_mean")


def test_it_begins_with_the_probe(start):
    fitted, probed = run(start, replace(RECIPE, rates=(0.0,))), probe(start, PREPROCESSING, TRAIN, ProbeRecipe())
    assert same_weights(fitted.model, probed.model)
    assert torch.equal(fitted.left_out, probed.left_out)


def test_the_probe_is_taken_where_no_rate_is_better(start):
    fitted = run(start, replace(RECIPE, rates=(1e29, 1e30)))
    assert fitted.recipe["rate"] is None
    assert fitted.recipe["tried"].keys() == {"probe"}
    assert fitted.history == ()
    assert same_weights(fitted.model, probe(start, PREPROCESSING, TRAIN, ProbeRecipe()).model)


def test_held_out_images_choose_nothing(start):
    recipe = replace(RECIPE, rates=(1.0, 0.01), epochs=6)
    one, other = (finetune(start, PREPROCESSING, TRAIN, part, recipe) for part in (HELD_OUT, None))
    assert one.recipe["rate"] == 0.01
    assert same_weights(one.model, other.model)
    assert one.recipe == other.recipe
    assert {point.accuracy for point in other.history} == {None}


def test_the_curves(start):
    history = run(start).history
    assert [point.step for point in history] == list(range(1, STEPS + 1))
    assert [point.epoch for point in history] == [step / 4 for step in range(1, STEPS + 1)]
    assert [point.held_out_loss is not None for point in history] == [False, False, False, True] * 3
    assert history[0].learning_rate == 0.003  # the warm-up is one step
    assert history[0].train_loss < 1.05  # a head of zeros begins with log(3)
    assert history[-1].learning_rate < 0.0001


def test_without_a_number_of_epochs_few_images_are_seen_more_often(start, monkeypatch):
    monkeypatch.setattr(finetuning, "LEAST_STEPS", 20)
    fitted = run(start, replace(RECIPE, epochs=None, batch=30))
    assert (fitted.history[-1].step, fitted.history[-1].epoch) == (20, 10)
    assert fitted.recipe["epochs"] == 10


def test_the_first_rate_that_is_not_worse_is_taken(start):
    recipe = replace(RECIPE, rates=(1e30, 1.0, 0.01, 0.003), epochs=6)
    fitted = run(start, recipe)
    assert fitted.recipe["rate"] == 0.01
    tried = fitted.recipe["tried"]
    assert tried.keys() == {"probe", "1.0", "0.01"}
    assert tried["1.0"]["accuracy"] < tried["probe"]["accuracy"] < tried["0.01"]["accuracy"]
    assert same_weights(fitted.model, run(start, replace(recipe, rates=(0.01,))).model)
    assert json.loads(json.dumps(fitted.recipe)).keys() == {"method", "rate", "tried", *asdict(recipe)}


def test_images_are_mirrored_where_that_does_no_harm(start):
    recipe = replace(RECIPE, epochs=0.25, augmentation=Augmentation(least_area=0.5))
    fitted = run(start, recipe)
    assert fitted.recipe["augmentation"]["flip"] is True
    assert same_weights(fitted.model, run(start, replace(RECIPE, epochs=0.25)).model)
    pixels = torch.zeros(20, *SIZE, 3, dtype=torch.uint8)
    pixels[:10, :, :12] = pixels[10:, :, 12:] = 200
    sides = Samples(pixels=pixels, classes=torch.arange(20) // 10)
    assert finetune(start, PREPROCESSING, sides, None, recipe).recipe["augmentation"]["flip"] is False


def test_too_large_a_rate_raises_diverged(start):
    with pytest.raises(Diverged, match="not a finite number after step 2: a lower learning rate may help"):
        run(start, replace(RECIPE, rates=(1e30,)))


def test_positions_are_interpolated_for_larger_images(start):
    larger = PREPROCESSING.resized((32, 48))
    fitted = finetune(start, larger, squares(12, size=(32, 48)), None, replace(RECIPE, epochs=1))
    assert fitted.model.config.image_size == (32, 48)
    with pytest.raises(ValueError, match=r"the images are \(16, 24\), and the network takes \(32, 48\)"):
        finetune(start, larger, TRAIN, HELD_OUT, RECIPE)


def test_the_seed_decides(start):
    assert not same_weights(run(start).model, run(start, replace(RECIPE, seed=1)).model)


def test_interrupted_at_any_step_it_ends_with_the_same_weights(start, tmp_path, monkeypatch):
    searched = replace(RECIPE, rates=(1.0, 0.001), epochs=2)
    whole = run(start, searched)
    for steps in (6, 6, 8):  # of a run for each rate, where a fifth of the images chooses, and of the whole one
        for step in range(steps):
            with interrupted_at(step, Classification):
                run(start, searched, tmp_path)
    ended = run(start, searched, tmp_path)
    monkeypatch.delattr(Classification, "loss")  # a run that has ended is not run again
    for fitted in (ended, run(start, searched, tmp_path)):
        assert same_weights(fitted.model, whole.model)
        assert (fitted.history, fitted.recipe) == (whole.history, whole.recipe)


def test_the_folder_of_another_run_is_refused(start, tmp_path):
    run(start, work=tmp_path)
    with pytest.raises(ValueError, match=r"/fine-tuning\.pt is of another run: seed was 0 and is 1\. .* to begin anew"):
        run(start, replace(RECIPE, seed=1), tmp_path)
    with pytest.raises(ValueError, match="is of another run: images to learn from was"):
        finetune(start, PREPROCESSING, squares(60, seed=2), HELD_OUT, RECIPE, work=tmp_path)
    with pytest.raises(ValueError, match="is of another run: network was"):
        run(toy_model(start.config, seed=1), work=tmp_path)
