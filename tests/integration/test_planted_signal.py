"""A head that is built to look at one patch lights exactly the place of that patch in the upright original.

Position i is the i-th unit vector, every query of a head is the same large constant, and its keys read one dimension.
So head h of layer l attends to the patch of PLANTED, whatever the image shows, and the last head of the last layer to
the brightest patch. Nothing of app/images/preprocess.py says where that is.
"""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image, ImageOps

from export.bundle import write_bundle
from tests.catalogue.case import STORED, encode, exif, stored
from tests.support.toy import toy_checkpoint

PATCH, GRID = 8, (3, 5)
RESIZE = (28, 44)  # height, width that the image just covers before 24 x 40 of it are cut out
PLANTED = {
    (0, 0): (0, 0), (0, 1): (0, 4), (0, 2): (2, 0), (0, 3): (2, 4), (1, 0): (1, 2), (1, 1): (0, 3), (1, 2): (2, 1),
}  # fmt: skip
BRIGHTEST = (1, 3)  # layer, head
BRIGHTNESS = 15  # the dimension that tells it; those before it are positions
LIT, UNLIT = (253, 231, 36), (68, 1, 84)  # viridis
SIZES = [(176, 112), (177, 113), (300, 200), (97, 211), (600, 81), (61, 600), (1000, 701), (44, 28), (43, 29)]


@torch.no_grad()
def plant(model: torch.nn.Module) -> None:
    width, depth, heads = model.config.width, model.config.depth, model.config.heads
    for name, parameter in model.named_parameters():
        if name.startswith(("patch_embed", "pos_embed", "cls_token", "blocks")):
            parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
    model.pos_embed[0, :, : GRID[0] * GRID[1]] = torch.eye(GRID[0] * GRID[1])
    model.patch_embed.proj.weight[BRIGHTNESS] = 4 / (3 * PATCH**2)
    for layer in range(depth):
        qkv = model.blocks[layer].attn.qkv
        for head in range(heads):
            row, column = PLANTED.get((layer, head), (0, 0))
            read, large = (BRIGHTNESS, 10) if (layer, head) == BRIGHTEST else (row * GRID[1] + column, 100)
            first = head * width // heads  # dimension of this head
            qkv.bias[first] = large
            qkv.weight[width + first, read] = 1


@pytest.fixture(scope="module")
def client(serve, once) -> Iterator[TestClient]:
    checkpoint = toy_checkpoint(heads=4)
    plant(checkpoint.model)
    rule = {"resize_mode": "shortest", "resize_size": RESIZE, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    planted = replace(checkpoint, preprocessing=replace(checkpoint.preprocessing, **rule))
    with serve(bundle=once("planted", lambda out: write_bundle(planted, out, replace=False))) as client:
        yield client


def place(size: tuple[int, int], patch: tuple[int, int]) -> np.ndarray:
    """Left, top, right, bottom of a patch in an upright image of `size` (width, height), between pixels."""
    shrink = min(size[0] / RESIZE[1], size[1] / RESIZE[0])
    resized = np.array([round(size[0] / shrink), round(size[1] / shrink)])
    crop = np.array([round((resized[0] - GRID[1] * PATCH) / 2), round((resized[1] - GRID[0] * PATCH) / 2)])
    corner = crop + PATCH * np.array(patch[::-1])
    return np.concatenate([corner, corner + PATCH]) * np.tile(size / resized, 2)


def scene(size: tuple[int, int]) -> Image.Image:
    """No two corners alike: an image that is turned or mirrored wrongly is not itself."""
    across, down = np.meshgrid(np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1]))
    return Image.fromarray(np.rint(255 * np.stack([across, down, 1 - across * down], axis=-1)).astype(np.uint8))


def post(client: TestClient, upright: Image.Image, orientation: int = 1) -> str:
    sent = encode(stored(orientation, upright), exif=exif(orientation))
    assert ImageOps.exif_transpose(Image.open(BytesIO(sent))).tobytes() == upright.tobytes()
    return client.post("/classify", content=sent).json()["results"][0]["attention"]


def drawn(client: TestClient, link: str, head: tuple[int, int], **params: str) -> np.ndarray:
    params = {"layer": str(head[0]), "head": str(head[1]), "interpolation": "nearest", **params}
    return np.asarray(Image.open(BytesIO(client.get(link, params=params).content)))


def lit(pixels: np.ndarray) -> np.ndarray:
    """Left, top, right, bottom of what is lit, which has to be all of a rectangle."""
    mask = (pixels[..., :3] == LIT).all(-1) & (pixels[..., 3] == 255)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    assert mask[box[1] : box[3], box[0] : box[2]].all()
    others = pixels[~mask]
    assert ((others[:, :3] == UNLIT).all(-1) | (others[:, 3] == 0)).all()
    return box


@pytest.mark.parametrize(
    ("size", "orientation", "within"),  # of a pixel: 0.5 is as exact as whole pixels are
    [
        *((size, orientation, 0.5) for size in [(176, 112), (264, 420)] for orientation in STORED),
        *((size, 6, 1) for size in SIZES),
    ],
)
def test_each_planted_patch_is_lit_through_every_orientation_and_in_odd_sizes(client, size, orientation, within):
    link = post(client, scene(size), orientation)
    for head, patch in PLANTED.items():
        pixels = drawn(client, link, head, overlay="false")
        scale = np.tile([pixels.shape[1] / size[0], pixels.shape[0] / size[1]], 2)
        assert np.abs(lit(pixels) - place(size, patch) * scale).max() <= within


@pytest.mark.parametrize("orientation", STORED)
def test_what_is_bright_in_the_image_is_lit_on_the_map(client, orientation):
    size = (176, 112)
    for patch in PLANTED.values():
        box = place(size, patch).astype(int)
        upright = Image.new("RGB", size, "black")
        upright.paste((255, 255, 255), tuple(box.tolist()))
        link = post(client, upright, orientation)
        assert lit(drawn(client, link, BRIGHTEST, overlay="false")).tolist() == box.tolist()


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("patch", [(0, 0), (2, 1)])
def test_the_overlay_blends_it_with_the_upright_image(client, orientation, patch):
    size = (176, 112)
    link = post(client, scene(size), orientation)
    head = next(head for head, planted in PLANTED.items() if planted == patch)
    found = drawn(client, link, head, alpha="0.5", fade="false")
    expected = 0.45 * (picture := np.asarray(scene(size)).astype(float))
    for patches, color in ((((0, 0), (2, 4)), UNLIT), ((patch, patch), LIT)):
        first, last = (place(size, p).astype(int) for p in patches)
        part = np.s_[first[1] : last[3], first[0] : last[2]]
        expected[part] = 0.5 * picture[part] + 0.5 * np.array(color)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 10  # the image is kept as a JPEG
