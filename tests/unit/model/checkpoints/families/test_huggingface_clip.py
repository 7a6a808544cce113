"""model/checkpoints/families/huggingface_clip.py: what the golden files cannot show."""

import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, altered_folder, with_more, without


@pytest.fixture
def altered(tmp_path):
    return lambda case, **changes: altered_folder(case, tmp_path, **changes)


@pytest.fixture
def tower_alone(altered):
    """The image tower of a whole model as transformers 4 or 5 saves it: with and without a prefix."""

    def alone(case, *, prefix):
        def tensors(found):
            return {k.replace("vision_model.", prefix): v for k, v in found.items() if k.startswith("vision_model.")}

        tower = json.loads((GOLDEN / f"huggingface-{case}/config.json").read_text())["vision_config"]
        folder = altered(case, tensors=tensors)
        (folder / "config.json").write_text(json.dumps({**tower, "model_type": f"{case}_vision_model"}))
        return folder

    return alone


def images(checkpoint):
    return torch.randn(2, 3, *checkpoint.config.image_size)


@pytest.mark.parametrize("prefix", ["vision_model.", ""])
@torch.no_grad()
def test_clips_tower_alone_gives_the_normed_class_token(tower_alone, prefix):
    whole, alone = load_checkpoint(GOLDEN / "huggingface-clip"), load_checkpoint(tower_alone("clip", prefix=prefix))
    assert (alone.config.embedding, alone.text_tower, alone.labels) == (24, False, ())
    batch = images(alone)
    torch.testing.assert_close(whole.model.pre_logits(alone.model(batch)), whole.model(batch))


@pytest.mark.parametrize("prefix", ["vision_model.", ""])
@torch.no_grad()
def test_siglips_tower_alone_gives_the_embedding_of_the_whole_model(tower_alone, prefix):
    whole, alone = load_checkpoint(GOLDEN / "huggingface-siglip"), load_checkpoint(tower_alone("siglip", prefix=prefix))
    assert alone.config.pool == "map"
    batch = images(alone)
    torch.testing.assert_close(alone.model(batch), whole.model(batch))


def test_early_files_hold_the_numbers_of_positions(altered):
    numbers = {f"{tower}__embeddings__position_ids": torch.arange(26) for tower in ("vision_model", "text_model")}
    folder = altered("clip", tensors=with_more(**numbers))
    assert load_checkpoint(folder).config == load_checkpoint(GOLDEN / "huggingface-clip").config


def test_an_old_vision_config_dict_comes_first(altered):
    """As CLIPConfig.__post_init__ has it: what it does not state is the default, not what vision_config states."""
    stated = json.loads((GOLDEN / "huggingface-clip/config.json").read_text())["vision_config"]
    del stated["hidden_act"]
    folder = altered("clip", vision_config_dict=stated, tower={"hidden_act": "gelu", "num_attention_heads": 7})
    description = describe_checkpoint(folder)
    assert (description.config.activation, description.config.heads) == ("quick_gelu", 3)
    assert description.origins["activation"] == "transformers' default for clip"


def test_openclips_files_have_another_activation(altered):
    assert describe_checkpoint(altered("clip", tower={"hidden_act": "gelu"})).config.activation == "gelu"


@pytest.mark.parametrize(("case", "score"), [("clip", "softmax"), ("siglip", "sigmoid")])
def test_the_way_of_comparing_says_how_to_score(case, score):
    description = describe_checkpoint(GOLDEN / f"huggingface-{case}")
    assert (description.score, description.text_tower) == (score, True)
    assert description.origins["score"].endswith("compares images with text")


def test_the_head_of_a_classifier_can_be_left_out():
    """What is left is the mean of the patches, not the vector that is compared with text."""
    alone = load_checkpoint(GOLDEN / "huggingface-clip-classifier", overrides={"num_classes": "0"})
    assert (alone.config.embedding, alone.config.pool, alone.labels) == (24, "mean", ())


def test_another_image_size_that_is_chosen_resizes_positions_without_antialiasing():
    chosen = load_checkpoint(GOLDEN / "huggingface-siglip", overrides={"image_size": "28,36"})
    table = load_file(GOLDEN / "huggingface-siglip/model.safetensors")[
        "vision_model.embeddings.position_embedding.weight"
    ]
    expected = F.interpolate(table.T.unflatten(1, (5, 5))[None], size=(7, 9), mode="bicubic")
    assert torch.equal(chosen.model.pos_embed, expected.flatten(2).mT)


@torch.no_grad()
def test_pixels_that_no_patch_covers_are_cut_off(altered):
    """SigLIP of 384 pixels and patches of 14: its convolution leaves out the last 6."""
    folder = altered("siglip", tower={"image_size": 22})
    recipe = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(recipe | {"size": {"height": 22, "width": 22}}))
    checkpoint = load_checkpoint(folder)
    preprocessing = checkpoint.preprocessing
    assert (preprocessing.size, preprocessing.resize_size, preprocessing.remainder) == ((20, 20), (22, 22), (2, 2))
    batch, patch_embed = torch.randn(2, 3, 22, 22), checkpoint.model.patch_embed
    assert torch.equal(patch_embed(batch), patch_embed(batch[..., :20, :20]))  # of a convolution: (2, 25, D)


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        (
            "clip",
            {"model_type": "siglip2"},
            "model_type siglip2; the supported models with such",
        ),
        ("clip", {"tower": {"image_size": 40}}, r"gives \(20, 20\) and CLIPModel takes \(40, 40\)"),
        ("clip", {"tensors": without("layers.1.self_attn.k_proj")}, r"has no .*layers\.1\.self_attn\.k_proj\.weight"),
        ("clip", {"tensors": with_more(vision_model__extra=torch.zeros(2))}, r"does not use all tensors: vision_model"),
        ("siglip", {"tower": {"vision_use_head": False}}, "SiglipModel has no attention pool"),
    ],
)
def test_the_error_names_unsupported_parts(altered, case, changes, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(case, **changes))
