"""export/fit/methods.py: recipes from a person's words."""

from dataclasses import replace

import pytest

from export.fit.methods import RECIPES, describe, of_crops, recipe
from model.fit.augment import Augmentation
from model.fit.finetune import FinetuneRecipe
from model.fit.pretrain import PretrainRecipe
from model.fit.probe import ProbeRecipe
from tests.support.toy import toy_checkpoint


def test_fields_are_read_from_text():
    given = [("epochs", "5"), ("rates", "0.01,0.1"), ("augmentation.flip", "no"), ("augmentation.least_area", "0.5")]
    augmentation = Augmentation(flip=False, least_area=0.5)
    expected = FinetuneRecipe(seed=3, epochs=5.0, rates=(0.01, 0.1), augmentation=augmentation)
    assert recipe("finetune", given, seed=3) == expected
    assert recipe("probe", [("read", "cls")], seed=3) == ProbeRecipe(read="cls")  # without chance it takes no seed


def test_other_parts_of_a_part_stay_those_of_the_recipe():
    found = recipe("pretrain", [("augmentation.flip", "yes")], seed=0)
    assert found.augmentation == replace(PretrainRecipe().augmentation, flip=True)
    assert found.augmentation.least_area != Augmentation().least_area


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("probe", ("epochs", "5"), "--recipe epochs: the recipe of probe has read"),
        ("finetune", ("epochs", "many"), "--recipe epochs: Input should be a valid number"),
        ("pretrain", ("epochs", "-3"), "--recipe epochs: it must be above 0"),
        ("finetune", ("rates", "0.1,nan"), "--recipe rates: it must be above 0"),
        ("finetune", ("augmentation.least_area", "2"), "--recipe augmentation: Value error, least_area must be above"),
    ],
)
def test_nonsense_is_one_sentence(method, given, message):
    with pytest.raises(ValueError, match="--recipe") as refusal:
        recipe(method, [given], seed=0)
    assert str(refusal.value).startswith(message)


def test_every_default_that_is_shown_can_be_given():
    for line in describe().replace("\n      ", " ").splitlines():
        method, _, fields = line.strip().partition(": ")
        given = [tuple(field.split("=")) for field in fields.split(", ")]
        assert recipe(method, given, seed=0) == RECIPES[method]()


def test_small_crops_are_taken_from_larger_images():
    preprocessing = toy_checkpoint().preprocessing
    assert of_crops(ProbeRecipe(), preprocessing) == of_crops(FinetuneRecipe(), preprocessing) == preprocessing
    larger = of_crops(PretrainRecipe(), preprocessing)
    assert (larger.size, larger.resize_size) == ((27, 46), (36, 55))
