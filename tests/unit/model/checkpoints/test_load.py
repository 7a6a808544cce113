"""model/checkpoints/load.py: files that nearly are what a library writes."""

from typing import Any

import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint, load_checkpoint
from tests.support.altered import altered, stated, with_more


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("openclip-average", {"model_cfg.vision_cfg.head_width": 0}),
        ("openclip-average", {"model_cfg.vision_cfg": [1]}),
        ("torchvision-vit", {"tensors": with_more({"encoder.pos_embedding": torch.zeros(5)})}),
    ],
)
def test_what_no_library_writes_is_refused_in_one_sentence(tmp_path, case, changes: dict[str, Any]):
    path = altered(case, tmp_path, **changes)
    for read in (describe_checkpoint, load_checkpoint):
        with pytest.raises(CheckpointError, match=r"^the checkpoint is not as its library writes it \(\w+: .*\)$"):
            read(path, overrides=stated(case))


@pytest.mark.parametrize("name", ["", 201 * "x"])
def test_a_name_that_no_bundle_may_have_is_refused_before_the_export(name):
    with pytest.raises(CheckpointError, match=r"^--set name=NAME: give it 1 to 200 characters"):
        describe_checkpoint("model/demo/shapes.safetensors", overrides={"name": name})
