"""What a client needs of a kept image to draw its maps itself."""

from io import BytesIO

import numpy as np
from PIL import Image

from tests.support.pictures import jpeg


def array(client, path: str) -> np.ndarray:
    return np.load(BytesIO(client.get(path).content))


def test_all_maps_the_embedding_and_the_image_come_in_three_files(client):
    (result,) = client.post("/embed?attention=true", content=jpeg(5)).json()["results"]
    path = f"/attention/{result['id']}"
    manifest = client.get("/model").json()["manifest"]
    layers, heads = manifest["layers"], manifest["heads"]
    maps = array(client, f"{path}/maps")
    assert np.array_equal(maps[: layers * heads], array(client, f"{path}/wall?format=npy").reshape(-1, *maps.shape[1:]))
    assert np.array_equal(maps[layers * heads], array(client, f"{path}?method=rollout&format=npy"))
    of_top = maps[layers * heads + 1 :][:layers]
    assert np.array_equal(of_top[2], array(client, f"{path}?method=evidence&layer=2&format=npy"))
    assert len(maps) == layers * heads + 1 + layers * manifest["explains"]["classes"][0]
    half = array(client, f"{path}/maps?dtype=float16")
    assert half.dtype == np.float16
    assert np.allclose(half, maps, rtol=1e-3, atol=1e-7)
    assert np.allclose(array(client, f"{path}/embedding"), result["embedding"], rtol=1e-4, atol=1e-5)
    sizes = {"all": (result["image"]["width"], result["image"]["height"]), "seen": tuple(manifest["image"]["size"])}
    for part, size in sizes.items():
        with Image.open(BytesIO(client.get(f"{path}/image?part={part}").content)) as image:
            assert (image.format, image.size) == ("JPEG", size)
