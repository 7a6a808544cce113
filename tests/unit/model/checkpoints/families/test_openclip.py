"""model/checkpoints/families/openclip.py: what the golden files cannot show."""

import json
import shutil
from pathlib import Path

import pytest
import torch.nn.functional as F
from safetensors.torch import load_file

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import FAMILIES, describe_checkpoint
from model.checkpoints.source import Source

GOLDEN = Path("tests/golden/checkpoints")
TOWER = GOLDEN / "openclip-quickgelu"


@pytest.fixture
def altered(tmp_path):
    """The golden folder with keys of its image tower and of its preprocessing replaced."""

    def alter(preprocess=(), **vision):
        folder = tmp_path / "altered"
        shutil.copytree(TOWER, folder)
        config = json.loads((folder / "open_clip_config.json").read_text())
        config["model_cfg"]["vision_cfg"].update(vision)
        config["preprocess_cfg"].update(preprocess)
        (folder / "open_clip_config.json").write_text(json.dumps(config))
        return folder

    return alter


@pytest.mark.parametrize("case", sorted(GOLDEN.glob("openclip-*")), ids=lambda case: case.name)
def test_its_own_family_alone_loads_it(case):
    first = next(family for family in FAMILIES if family.recognises(Source(case)))
    assert first.__name__ == "model.checkpoints.families.openclip"


def test_the_embedding_is_the_projection():
    description = describe_checkpoint(TOWER)
    assert (description.config.embedding, description.config.activation, description.labels) == (12, "quick_gelu", ())
    assert (description.preprocessing.resize_mode, description.preprocessing.interpolation) == ("shortest", "bicubic")


def test_another_image_size_resizes_positions_with_antialiasing():
    """open_clip/model.py resize_pos_embed."""
    chosen = load_checkpoint(TOWER, overrides={"image_size": "12,16"})
    table = load_file(TOWER / "open_clip_model.safetensors")["visual.positional_embedding"][1:]
    square = table.T.unflatten(1, (5, 5))[None]
    expected = F.interpolate(square, size=(3, 4), mode="bicubic", antialias=True).flatten(2).mT
    assert (chosen.model.pos_embed == expected).all()


@pytest.mark.parametrize(
    ("vision", "message"),
    [
        ({"attentional_pool": True}, "has an image tower with attentional_pool True, which is not supported"),
        ({"timm_model_name": "convnext_base"}, "with timm_model_name convnext_base"),
        ({"qk_norm": True}, "with qk_norm True"),
        ({"pool_type": "none"}, "has the pool_type none"),
        ({"width": 32}, "is .*, not "),
        ({"preprocess": {"resize_mode": "longest"}}, "resize_mode 'longest' is none of shortest"),
    ],
)
def test_the_error_names_unsupported_parts(altered, vision, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(altered(**vision))


def test_weights_without_their_description_are_refused(altered):
    folder = altered()
    (folder / "open_clip_config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no open_clip_config\.json beside"):
        load_checkpoint(folder)


def test_labels_need_the_text_tower_that_transformers_has(altered, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\n")
    with pytest.raises(CheckpointError, match="no head"):
        load_checkpoint(TOWER, labels=str(tmp_path / "labels.txt"))
