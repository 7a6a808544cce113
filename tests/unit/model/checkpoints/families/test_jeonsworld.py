"""model/checkpoints/families/jeonsworld.py, against the forward of its models/modeling.py, written again here."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from app.images.preprocess import preprocess
from export.image_spec import image_spec
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint

WIDTH, DEPTH, HEADS, HIDDEN, PATCH, SIDE, CLASSES = 24, 2, 3, 40, 4, 20, 5
TOKENS = 1 + (SIDE // PATCH) ** 2
EMBEDDINGS = "transformer.embeddings."
BY_HAND = {"heads": str(HEADS)}


def state_dict():
    """As train.py saves it: torch.save(model.state_dict(), "NAME_checkpoint.bin")."""
    shapes = {
        f"{EMBEDDINGS}position_embeddings": (1, TOKENS, WIDTH),
        f"{EMBEDDINGS}cls_token": (1, 1, WIDTH),
        f"{EMBEDDINGS}patch_embeddings.weight": (WIDTH, 3, PATCH, PATCH),
        f"{EMBEDDINGS}patch_embeddings.bias": (WIDTH,),
        **layer("transformer.encoder.encoder_norm", WIDTH),
        **layer("head", CLASSES, WIDTH),
    }
    for i in range(DEPTH):
        block = f"transformer.encoder.layer.{i}"
        shapes |= layer(f"{block}.attention_norm", WIDTH) | layer(f"{block}.ffn_norm", WIDTH)
        shapes |= layer(f"{block}.ffn.fc1", HIDDEN, WIDTH) | layer(f"{block}.ffn.fc2", WIDTH, HIDDEN)
        for name in ("query", "key", "value", "out"):
            shapes |= layer(f"{block}.attn.{name}", WIDTH, WIDTH)
    torch.manual_seed(0)
    return {name: torch.randn(shape) * 0.5 for name, shape in shapes.items()}


def layer(name, *shape):
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def forward(state, images):
    """Logits (B, classes) of images (B, 3, height, width)."""

    def linear(x, name):
        return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), state[f"{name}.weight"], state[f"{name}.bias"], eps=1e-6)

    def heads(x):
        return x.unflatten(2, (HEADS, -1)).transpose(1, 2)

    patches = f"{EMBEDDINGS}patch_embeddings"
    x = F.conv2d(images, state[f"{patches}.weight"], state[f"{patches}.bias"], stride=PATCH).flatten(2).mT
    x = torch.cat([state[f"{EMBEDDINGS}cls_token"].expand(len(x), -1, -1), x], 1)
    x = x + state[f"{EMBEDDINGS}position_embeddings"]
    for i in range(DEPTH):
        block = f"transformer.encoder.layer.{i}"
        y = norm(x, f"{block}.attention_norm")
        q, k, v = (heads(linear(y, f"{block}.attn.{name}")) for name in ("query", "key", "value"))
        attended = (q @ k.mT / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        x = x + linear(attended.transpose(1, 2).flatten(2), f"{block}.attn.out")
        y = norm(x, f"{block}.ffn_norm")
        x = x + linear(F.gelu(linear(y, f"{block}.ffn.fc1")), f"{block}.ffn.fc2")
    return linear(norm(x, "transformer.encoder.encoder_norm")[:, 0], "head")


def write(folder, change=lambda state: state):
    torch.save(change(state_dict()), folder / "mine_checkpoint.bin")
    return folder / "mine_checkpoint.bin"


@pytest.mark.parametrize("prefix", ["", "module."])
def test_logits_and_pixels_are_its_own(tmp_path, prefix):
    path = write(tmp_path, lambda state: {prefix + name: tensor for name, tensor in state.items()})
    checkpoint = load_checkpoint(path, overrides=BY_HAND)
    images = torch.randn(2, 3, SIDE, SIDE)
    with torch.inference_mode():
        torch.testing.assert_close(checkpoint.model(images), forward(state_dict(), images), rtol=1e-5, atol=1e-5)
    # torchvision's Resize((20, 20)) of a Pillow image, ToTensor and Normalize with 0.5.
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8))
    pixels, _ = preprocess(image, image_spec(checkpoint.preprocessing))
    assert (pixels == np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))).all()
    assert (checkpoint.preprocessing.mean, checkpoint.preprocessing.std) == ((0.5,) * 3, (0.5,) * 3)


def test_a_published_width_has_its_number_of_heads(tmp_path):
    wide = {f"{EMBEDDINGS}patch_embeddings.weight": torch.zeros(768, 3, PATCH, PATCH)}
    assert describe_checkpoint(write(tmp_path, lambda state: state | wide)).config.heads == 12
    with pytest.raises(CheckpointError, match="does not say heads"):
        load_checkpoint(write(tmp_path))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({f"{EMBEDDINGS}hybrid_model.root.conv.weight": torch.zeros(1)}, "an R50 hybrid of jeonsworld/ViT-pytorch"),
        ({"transformer.encoder.part_layer.attn.query.weight": torch.zeros(1)}, "unused: .*part_layer"),  # TransFG's
    ],
)
def test_what_is_built_on_it_is_refused(tmp_path, more, message):
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(write(tmp_path, lambda state: state | more), overrides=BY_HAND)
