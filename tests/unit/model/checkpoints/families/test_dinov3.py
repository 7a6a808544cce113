"""model/checkpoints/families/dinov3.py: what the golden file, which has timm's numbers, does not show."""

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, with_more, without

BACKBONE = GOLDEN / "dinov3/checkpoint.hub/pretrain.pth"
GIVEN = {"mean": "0.4,0.4,0.4", "std": "0.2,0.2,0.2", "image_size": "16,16"}
TIMM = {"architecture": "vit_small_plus_patch16_dinov3_qkvb", "embed_dim": "24", "depth": "2", "num_heads": "3"}


@pytest.fixture
def changed(saved):
    return lambda change=dict: saved(change(torch.load(BACKBONE, weights_only=True)))


@pytest.mark.parametrize(
    ("width", "satellites", "mean"), [(384, False, 0.485), (1024, False, 0.485), (1024, True, 0.43)]
)
def test_the_mean_is_that_of_the_only_published_weights_of_this_kind(changed, width, satellites, mean):
    """hub/backbones.py of dinov3: of ViT-L the file for satellites alone has a norm for local crops."""
    change = dict if satellites else without("local_cls_norm")
    patches = {"patch_embed.proj.weight": torch.zeros(width, 3, 16, 16)}
    file = changed(lambda state: change(state) | patches)
    assert describe_checkpoint(file).preprocessing.mean[0] == mean


def test_the_mean_is_asked_for_where_it_may_be_that_of_satellites(changed):
    with pytest.raises(CheckpointError, match=r"web \(LVD-1689M\) or of satellites .* --set mean=0.485,0.456,0.406 "):
        load_checkpoint(changed())


def test_timms_architecture_loads_the_same_tensors(changed):
    """models/eva.py, checkpoint_filter_fn: only the pool is another, the mean of the patches."""
    given = {**TIMM, "patch_size": "4", "image_size": "16,16"}
    theirs, ours = load_checkpoint(changed(), overrides=given), load_checkpoint(changed(), overrides=GIVEN)
    assert (theirs.family, theirs.config.pool) == ("timm", "mean")
    images = torch.randn(2, 3, 16, 16)
    tokens = [checkpoint.model.encode(images) for checkpoint in (theirs, ours)]
    torch.testing.assert_close(*tokens)


def test_biases_are_left_out_only_where_they_are_zero(changed):
    given = {**TIMM, "architecture": "vit_small_plus_patch16_dinov3", "patch_size": "4", "image_size": "16,16"}
    with pytest.raises(CheckpointError, match=r"qkv.bias is not zero, and the architecture has no such bias: that "):
        load_checkpoint(changed(), overrides=given)

    def zeroed(state):
        return {name: tensor * 0 if name.endswith("qkv.bias") else tensor for name, tensor in state.items()}

    assert not load_checkpoint(changed(zeroed), overrides=given).config.qkv_bias


def test_other_periods_are_refused(changed):
    other, rounded = torch.tensor([1.0, 3.0]), torch.tensor([1.0, 10.0]).bfloat16()
    with pytest.raises(CheckpointError, match=r"rope_embed\.periods is not that of a rope of base 100"):
        load_checkpoint(changed(with_more({"rope_embed.periods": other})), overrides=GIVEN)
    assert load_checkpoint(changed(with_more({"rope_embed.periods": rounded})), overrides=GIVEN)
