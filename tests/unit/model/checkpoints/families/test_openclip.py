"""model/checkpoints/families/openclip.py: what the golden files cannot show."""

import json
import shutil
from pathlib import Path

import pytest

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError

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
