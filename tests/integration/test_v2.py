"""The Open Inference Protocol, by tritonclient as it is, against the real server; and what no client would send."""

from typing import Any
from unittest.mock import AsyncMock

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from PIL import Image
from tritonclient.utils import InferenceServerException

from tests.catalogue.case import encode
from tests.support.processes import PATIENCE_S

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), dtype=np.uint8)  # the demo's input size
CLASSIFIED = 'vit_images_total{outcome="classified"}'
ENCODED = [encode(Image.fromarray(pixels)) for pixels in PIXELS]


@pytest.fixture(scope="module")
def v2(url) -> triton.InferenceServerClient:
    return triton.InferenceServerClient(url.removeprefix("http://"), concurrency=8)


def given(values: np.ndarray, datatype: str, *, binary: bool = True) -> Any:
    tensor = triton.InferInput("images", list(values.shape), datatype)
    tensor.set_data_from_numpy(values, binary_data=binary)
    return tensor


@pytest.fixture(scope="module")
def scores(url) -> np.ndarray:
    """What /classify says of the images, (3, 12)."""
    rows = []
    for image in ENCODED:
        answer = httpx.post(f"{url}/classify?top_k=12&attention=false", content=image, timeout=PATIENCE_S)
        (result,) = answer.json()["results"]
        by_index = {prediction["index"]: prediction["score"] for prediction in result["predictions"]}
        rows.append([by_index[i] for i in range(12)])
    return np.array(rows)


def test_metadata_and_health(v2):
    assert v2.is_server_live()
    assert v2.is_server_ready()
    known = [("shapes", ""), ("shapes", "1"), ("nope", ""), ("shapes", "2")]
    assert [v2.is_model_ready(*model) for model in known] == [True, True, False, False]
    assert "classification" in v2.get_server_metadata()["extensions"]
    metadata, config = v2.get_model_metadata("shapes", "1"), v2.get_model_config("shapes")
    assert metadata == {
        "name": "shapes",
        "versions": ["1"],
        "platform": "onnxruntime_onnx",
        "inputs": [{"name": "images", "datatype": "UINT8", "shape": [-1, 64, 64, 3]}],
        "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 12]}],
    }
    assert (config["max_batch_size"], config["input"][0]["format"]) == (16, "FORMAT_NHWC")
    assert (config["input"][0]["dims"], config["output"][0]["dims"]) == ([64, 64, 3], [12])


@pytest.mark.parametrize(
    "images",
    [
        given(PIXELS, "UINT8"),
        given(PIXELS, "UINT8", binary=False),
        given(np.array(ENCODED, np.object_), "BYTES"),
        given(np.array(ENCODED, np.object_)[:, None], "BYTES"),
    ],
    ids=["pixels", "pixels in JSON", "encoded", "encoded in a column"],
)
def test_images_get_the_scores_of_classify(v2, scores, images):
    found = v2.infer("shapes", [images])
    assert found.as_numpy("scores") == pytest.approx(scores, abs=1e-6)
    assert [output["name"] for output in found.get_response()["outputs"]] == ["scores"]


def test_the_requested_outputs_are_returned(v2, url):
    wanted = [
        triton.InferRequestedOutput("embedding", binary_data=False),
        triton.InferRequestedOutput("logits"),
        triton.InferRequestedOutput("scores", class_count=2),
        triton.InferRequestedOutput("patches"),
        triton.InferRequestedOutput("tokens"),
    ]
    found = v2.infer("shapes", [given(PIXELS, "UINT8")], outputs=wanted, request_id="a-1")
    answer = found.get_response()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("a-1", "shapes", "1")
    assert [output["name"] for output in answer["outputs"]] == ["embedding", "logits", "scores", "patches", "tokens"]
    embedded, classified = (
        httpx.post(f"{url}/{path}", content=ENCODED[0], timeout=PATIENCE_S).json()["results"][0]
        for path in ("embed", "classify")
    )
    assert found.as_numpy("embedding")[0] == pytest.approx(embedded["embedding"], abs=1e-5)
    patches, tokens = found.as_numpy("patches"), found.as_numpy("tokens")
    assert (patches.shape, tokens.shape) == ((3, 8, 8, 128), (3, 65, 128))
    assert np.array_equal(patches.reshape(3, 64, 128), tokens[:, 1:])
    assert tokens[:, 0] == pytest.approx(found.as_numpy("embedding"), abs=1e-5)
    assert found.as_numpy("scores").shape == (3, 2)
    first = classified["predictions"][0]
    value, index, label = found.as_numpy("scores")[0][0].decode().split(":", 2)
    assert (int(index), label) == (first["index"], first["label"])
    assert float(value) == pytest.approx(first["score"], abs=1e-6)
    assert int(index) == found.as_numpy("logits")[0].argmax()


def test_maps_are_kept_on_request(v2, url):
    for images in (given(np.array(ENCODED[:2], np.object_), "BYTES"), given(PIXELS[:2], "UINT8")):
        found = v2.infer("shapes", [images], parameters={"attention": True})
        one, other = found.get_response()["parameters"]["ids"].split(",")
        for id in (one, other):
            answer = httpx.get(f"{url}/attention/{id}?format=json", timeout=PATIENCE_S)
            assert answer.json()["image"] == [64, 64]
    assert "parameters" not in v2.infer("shapes", [images]).get_response()


@pytest.mark.parametrize(
    ("model", "images", "status", "named"),
    [
        (("shapes", ""), given(PIXELS[[0] * 17], "UINT8"), 400, "17 images"),
        (("shapes", ""), given(np.array([ENCODED[0], b"x"], np.object_), "BYTES"), 415, "Image 2 of 2"),
        (("nope", ""), given(PIXELS, "UINT8"), 404, "nope"),
        (("shapes", "9"), given(PIXELS, "UINT8"), 404, "version 9"),
    ],
)
def test_errors_reach_the_clients_exception(v2, model, images, status, named):
    name, version = model
    with pytest.raises(InferenceServerException, match=named) as refused:
        v2.infer(name, [images], model_version=version)
    assert refused.value.status() == str(status)


def test_a_time_limit_in_microseconds(client):
    request = head(PIXELS[:1], parameters={"timeout": 1})
    answer = client.post("/v2/models/shapes/infer", json=request)
    assert (answer.status_code, answer.json()["error"]) == (503, answer.json()["detail"])
    assert client.post("/v2/models/shapes/infer", json=head(PIXELS[:1], parameters={"timeout": 0})).status_code == 200


def head(pixels: np.ndarray, **more: Any) -> dict[str, Any]:
    tensor = {"name": "images", "datatype": "UINT8", "shape": list(pixels.shape), "data": pixels.tolist()}
    return {"inputs": [tensor], **more}


@pytest.mark.parametrize("more", [{"outputs": [{"name": "zzz"}]}, {"parameters": {"attention": "yes"}}])
def test_an_invalid_request_is_refused_before_the_model_runs(client, more):
    before = classified(client)
    answer = client.post("/v2/models/shapes/infer", json=head(PIXELS[:1], **more))
    assert (answer.status_code, answer.json()["error"]) == (400, answer.json()["detail"])
    assert classified(client) == before


def classified(client) -> list[str]:
    """How many images, as the metrics have it."""
    return [line for line in client.get("/metrics").text.splitlines() if line.startswith(CLASSIFIED)]


def test_maps_that_are_not_kept_have_no_id(client, monkeypatch):
    monkeypatch.setattr(client.app.state.services.explainer.store, "keep", AsyncMock(return_value=False))
    answer = client.post("/v2/models/shapes/infer", json=head(PIXELS[:2], parameters={"attention": True}))
    assert answer.json()["parameters"] == {"ids": ","}


def test_a_model_of_the_hub_has_a_name_without_a_slash(serve, bundle_with):
    with serve(bundle=bundle_with(name="org/shapes")) as client:
        assert client.get("/model").json()["name"] == "org/shapes"
        answer = client.post("/v2/models/org--shapes/infer", json=head(PIXELS[:1]))
        assert (answer.status_code, answer.json()["model_name"]) == (200, "org--shapes")
