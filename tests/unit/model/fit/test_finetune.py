"""model/fit/finetune.py and loop.py: what is learned, what is kept, and that interruptions change nothing."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch

import model.fit.snapshot
from model.config import variant
from model.fit.augment import Augmentation
from model.fit.classification import Classification
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.loop import Diverged
from model.fit.measure import measure
from model.fit.network import with_new_head
from tests.support.samples import PREPROCESSING, SIZE, squares
from tests.support.toy import toy_model

TRAIN, HELD_OUT = squares(60), squares(30, seed=1)
RECIPE = FinetuneRecipe(
    optimiser="adamw", rates=(0.003,), epochs=3, batch=16, augmentation=Augmentation(least_area=0.5)
)
SEARCHED = replace(RECIPE, rates=(0.001, 0.003), search_share=0.34)
STEPS = 12  # of RECIPE; SEARCHED has two runs of 4 before them


@pytest.fixture(scope="module")
def start():
    return toy_model(variant("mu/8", image_size=SIZE, num_classes=7))


@pytest.fixture
def always(monkeypatch):
    """A snapshot after every step."""
    monkeypatch.setattr(model.fit.snapshot, "EVERY_S", 0)


def same(one, other) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def run(start, recipe=RECIPE, work=None):
    return finetune(start, PREPROCESSING, TRAIN, HELD_OUT, recipe, work=work)


@pytest.mark.parametrize(("kind", "rate"), [("sgd", 0.03), ("adamw", 0.003)])
def test_it_learns(start, kind, rate):
    fitted = run(start, replace(RECIPE, optimiser=kind, rates=(rate,), epochs=15, augmentation=Augmentation()))
    assert fitted.figures["top1_accuracy"] > 0.9
    assert not fitted.model.training
    assert fitted.history[-1].train_loss < fitted.history[0].train_loss
    assert fitted.model.config == variant("mu/8", image_size=SIZE, num_classes=3)


def test_the_network_that_is_given_stays_as_it_is(start):
    before = {name: tensor.clone() for name, tensor in start.state_dict().items()}
    run(start)
    assert all(torch.equal(tensor, before[name]) for name, tensor in start.state_dict().items())


def test_the_weights_of_the_best_epoch_are_kept(start):
    fitted = run(start, replace(RECIPE, rates=(0.03,), epochs=6))
    ends = [point for point in fitted.history if point.accuracy is not None]
    assert [point.epoch for point in ends] == [1, 2, 3, 4, 5, 6]
    best = max(ends, key=lambda point: (point.accuracy, -point.held_out_loss))
    assert best is not ends[-1]
    assert (fitted.figures["top1_accuracy"], fitted.figures["loss"]) == (best.accuracy, best.held_out_loss)
    assert measure(fitted.model, HELD_OUT, PREPROCESSING).loss == pytest.approx(best.held_out_loss)


def test_the_curves(start):
    history = run(start).history
    assert [point.step for point in history] == list(range(1, STEPS + 1))
    assert [point.epoch for point in history] == [step / 4 for step in range(1, STEPS + 1)]
    assert [point.held_out_loss is not None for point in history] == [False, False, False, True] * 3
    # The warm-up is one step; the head of zeros gives each of three classes the same score.
    assert history[0].learning_rate == 0.003
    assert history[0].train_loss == pytest.approx(torch.tensor(3.0).log().item())
    assert history[-1].learning_rate < 0.0001


def test_without_a_number_of_epochs_few_images_are_seen_more_often(start):
    fitted = run(start, replace(RECIPE, epochs=None, batch=30))
    assert (fitted.history[-1].step, fitted.history[-1].epoch) == (250, 125)
    assert fitted.recipe["epochs"] == 125


def test_the_best_learning_rate_of_short_runs_is_taken(start):
    recipe = replace(RECIPE, rates=(1e-9, 0.003, 1e9), epochs=6, search_share=0.34)
    fitted = run(start, recipe)
    assert fitted.recipe["rate"] == 0.003
    tried = fitted.recipe["tried"]
    assert tried["0.003"]["accuracy"] > tried["1e-09"]["accuracy"]
    assert same(fitted.model, run(start, replace(recipe, rates=(0.003,))).model)


def test_the_recipe_is_json_and_has_every_field(start):
    fitted = run(start, SEARCHED)
    assert json.loads(json.dumps(fitted.recipe)).keys() == {"method", "rate", "tried", *asdict(SEARCHED)}


def test_a_rate_that_is_too_large_is_said(start):
    with pytest.raises(Diverged, match="no finite number after step 2: a lower learning rate may help"):
        run(start, replace(RECIPE, optimiser="sgd", rates=(1e300,)))
    with pytest.raises(Diverged, match=r"every learning rate is too large: 1e\+299, 1e\+300"):
        run(start, replace(RECIPE, optimiser="sgd", rates=(1e299, 1e300)))


def test_without_held_out_images_the_last_weights_are_taken(start):
    fitted = finetune(start, PREPROCESSING, TRAIN, None, SEARCHED)
    assert fitted.figures == {"train_images": 60}
    assert fitted.recipe["rate"] == SEARCHED.rates[0]
    assert {point.accuracy for point in fitted.history} == {None}


def test_images_to_learn_from_may_be_larger_and_positions_are_interpolated(start):
    larger = PREPROCESSING.resized((32, 48))
    fitted = finetune(start, larger, squares(12, size=(40, 60)), squares(6, size=(32, 48)), replace(RECIPE, epochs=1))
    assert fitted.model.config.image_size == (32, 48)
    with pytest.raises(ValueError, match=r"the images are \(16, 24\), and the network takes \(32, 48\)"):
        finetune(start, larger, TRAIN, HELD_OUT, RECIPE)


def test_at_a_rate_of_nothing_the_network_stays_as_it_was(start):
    fitted = run(start, replace(RECIPE, rates=(0.0,)))
    assert same(fitted.model, with_new_head(start, classes=3, image_size=SIZE))


def test_the_seed_decides(start):
    first, second, other = (run(start, replace(RECIPE, seed=seed)).model for seed in (0, 0, 1))
    assert same(first, second)
    assert not same(first, other)


class Interrupted(Exception):
    pass


def test_interrupted_at_any_step_it_ends_with_the_same_weights(start, always, tmp_path, monkeypatch):
    whole = run(start, SEARCHED)
    loss, calls = Classification.loss, []

    def interrupted(self, step):
        calls.append(step)
        if len(calls) % 2 == 0:  # every run does one step more
            raise Interrupted
        return loss(self, step)

    monkeypatch.setattr(Classification, "loss", interrupted)
    for _ in range(8 + STEPS - 1):
        with pytest.raises(Interrupted):
            run(start, SEARCHED, tmp_path)
    again = run(start, SEARCHED, tmp_path)
    assert same(again.model, whole.model)
    assert (again.history, again.figures, again.recipe) == (whole.history, whole.figures, whole.recipe)


def test_a_run_that_has_ended_is_not_run_again(start, tmp_path, monkeypatch):
    whole = run(start, SEARCHED, tmp_path)
    monkeypatch.delattr(Classification, "loss")
    again = run(start, SEARCHED, tmp_path)
    assert same(again.model, whole.model)
    assert again.history == whole.history


def test_the_folder_of_another_run_is_refused(start, tmp_path):
    run(start, work=tmp_path)
    with pytest.raises(ValueError, match="is of another run: seed was 0 and is 1"):
        run(start, replace(RECIPE, seed=1), tmp_path)
    with pytest.raises(ValueError, match="is of another run: images to learn from was"):
        finetune(start, PREPROCESSING, squares(60, seed=2), HELD_OUT, RECIPE, work=tmp_path)
    with pytest.raises(ValueError, match="is of another run: network was"):
        run(toy_model(start.config, seed=1), work=tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
import model.fit.snapshot
from tests.unit.model.fit.test_finetune import RECIPE, run, toy_model, variant, SIZE
torch.set_num_threads(int(sys.argv[3]))
model.fit.snapshot.EVERY_S = 0
fsync, written = os.fsync, []
def killing(file):
    written.append(fsync(file))
    if len(written) == int(sys.argv[2]):  # written whole, but not in its place yet
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = killing
run(toy_model(variant("mu/8", image_size=SIZE, num_classes=7)), RECIPE, Path(sys.argv[1]))
"""


def test_killed_while_it_writes_it_ends_with_the_same_weights(start, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path), "3", str(torch.get_num_threads())]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": "."}, timeout=280, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob(".*.new"))
    again, whole = run(start, work=tmp_path), run(start)
    assert same(again.model, whole.model)
    assert again.history == whole.history
