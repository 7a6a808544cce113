"""CLIP and SigLIP of transformers: what the golden files cannot show."""

import json

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, altered


def tower_alone(case, folder, *, prefix):
    """The image tower of a whole model as transformers 4 or 5 saves it: with and without a prefix."""

    def tensors(state):
        return {k.replace("vision_model.", prefix): v for k, v in state.items() if k.startswith("vision_model.")}

    tower = json.loads((GOLDEN / f"huggingface-{case}/config.json").read_text())["vision_config"]
    path = altered(f"huggingface-{case}", folder, tensors=tensors)
    (path / "config.json").write_text(json.dumps({**tower, "model_type": f"{case}_vision_model"}))
    return path


@pytest.mark.parametrize("prefix", ["vision_model.", ""])
@pytest.mark.parametrize(("case", "pool"), [("clip", "cls"), ("siglip", "map")])
@torch.no_grad()
def test_a_tower_alone_gives_what_the_whole_model_projects(tmp_path, case, pool, prefix):
    """CLIP's is the normed class token, SigLIP's is the embedding itself."""
    whole = load_checkpoint(GOLDEN / f"huggingface-{case}")
    alone = load_checkpoint(tower_alone(case, tmp_path, prefix=prefix))
    assert (alone.config.pool, alone.config.embedding, alone.text_tower, alone.labels) == (pool, 24, False, ())
    images = torch.randn(2, 3, *alone.config.image_size)
    project = whole.model.pre_logits or torch.nn.Identity()
    torch.testing.assert_close(project(alone.model(images)), whole.model(images))


def test_an_old_vision_config_dict_comes_first(tmp_path):
    """As CLIPConfig.__post_init__ has it: what it does not state is the default, not what vision_config states."""
    stated = json.loads((GOLDEN / "huggingface-clip/config.json").read_text())["vision_config"]
    del stated["hidden_act"]
    other = {"vision_config.hidden_act": "gelu", "vision_config.num_attention_heads": 7}
    description = describe_checkpoint(altered("huggingface-clip", tmp_path, vision_config_dict=stated, **other))
    assert (description.config.activation, description.config.heads) == ("quick_gelu", 3)
    assert description.origins["activation"].where == "transformers' default for clip"


@torch.no_grad()
def test_pixels_that_no_patch_covers_are_cut_off(tmp_path):
    """SigLIP of 384 pixels and patches of 14: its convolution leaves out the last 6."""
    folder = altered("huggingface-siglip", tmp_path, **{"vision_config.image_size": 22})
    recipe = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(recipe | {"size": {"height": 22, "width": 22}}))
    checkpoint = load_checkpoint(folder)
    preprocessing = checkpoint.preprocessing
    assert (preprocessing.size, preprocessing.resize_size, preprocessing.remainder) == ((20, 20), (22, 22), (2, 2))
    batch, patch_embed = torch.randn(2, 3, 22, 22), checkpoint.model.patch_embed
    assert torch.equal(patch_embed(batch), patch_embed(batch[..., :20, :20]))  # of a convolution: (2, 25, D)
