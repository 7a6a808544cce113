"""Every protocol gives the same labels and scores."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from model.shapes import held_out
from tests.benchmarks.doors import tensor

IMAGES, BATCH = 200, 10
INFER = "/v2/models/shapes/infer"


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    return [sample.pixels for sample in held_out(IMAGES)]


@pytest.fixture(scope="module")
def encoded(images) -> list[bytes]:
    """Without loss, in the network's input size."""
    found = []
    for pixels in images:
        out = BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        found.append(out.getvalue())
    return found


@pytest.fixture(scope="module")
def expected(client, encoded) -> list[list[tuple[str, float]]]:
    """Labels with their scores, the best first, from POST /classify."""
    results = []
    for start in range(0, IMAGES, BATCH):
        files = [("image", (str(i), image)) for i, image in enumerate(encoded[start : start + BATCH])]
        results += client.post("/classify?top_k=12&attention=false", files=files).json()["results"]
    return [[(p["label"], p["score"]) for p in result["predictions"]] for result in results]


def same(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> bool:
    return [label for label, _ in found] == [label for label, _ in expected] and [score for _, score in found] == (
        pytest.approx([score for _, score in expected], abs=2e-6)
    )


def test_hugging_face(client, encoded, expected):
    for image, ranked in zip(encoded, expected, strict=True):
        found = [(one["label"], one["score"]) for one in client.post("/?top_k=12", content=image).json()]
        assert same(found, ranked)


@pytest.mark.parametrize("datatype", ["BYTES", "UINT8"])
def test_open_inference_protocol(client, images, encoded, expected, datatype):
    found = []
    for start in range(0, IMAGES, BATCH):
        if datatype == "UINT8":
            request = tensor(INFER, [BATCH, 64, 64, 3], "UINT8", np.stack(images[start : start + BATCH]).tobytes())
        else:
            elements = [len(image).to_bytes(4, "little") + image for image in encoded[start : start + BATCH]]
            request = tensor(INFER, [BATCH], "BYTES", b"".join(elements))
        head, _, body = request.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        answer = client.post(INFER, content=body, headers=headers)
        length = int(answer.headers["inference-header-content-length"])
        found.append(np.frombuffer(answer.content[length:], "<f4").reshape(BATCH, 12))
    for scores, ranked in zip(np.concatenate(found), expected, strict=True):
        by_label = dict(ranked)
        labels = sorted(by_label)  # the demo's labels are in the order of the alphabet
        assert scores == pytest.approx([by_label[label] for label in labels], abs=2e-6)
        assert labels[int(scores.argmax())] == ranked[0][0]
