"""model/fit/network.py: the body of a network stays, its head goes."""

import pytest
import torch

from model.fit.network import with_new_head
from model.variants import variant
from tests.support.toy import toy_model

SIZE = (16, 24)


@pytest.mark.parametrize(
    ("changes", "read", "pool"),
    [
        ({}, "own", "cls"),
        ({}, "cls_mean", "cls_mean"),
        ({"representation_size": 11}, "cls", "cls"),
        ({"representation_size": 11, "representation": "linear", "head": "cosine", "head_bias": False}, "cls", "cls"),
        ({"distillation_token": True, "distillation_head": True}, "cls_mean", "cls_mean"),
        ({"pool": "map", "class_token": False}, "cls_mean", "map"),
        ({"pool": "mean", "final_norm": "after_pool"}, "cls_mean", "mean"),
        ({"head_layers": 2, "num_classes": 0}, "cls_mean", "cls_mean"),
    ],
)
def test_tokens_are_those_of_the_network_and_the_head_is_zero(changes, read, pool):
    model = toy_model(variant("mu/8", image_size=SIZE, **{"num_classes": 7} | changes))
    new = with_new_head(model, classes=3, image_size=SIZE, read=read)
    images = torch.randn(2, 3, *SIZE)
    with torch.inference_mode():
        assert torch.equal(new.encode(images), model.encode(images))
        assert torch.equal(new(images), torch.zeros(2, 3))
    assert new.config.pool == pool
    assert not new.training
