"""app/api/protocols/v2/response.py: tensors in JSON and after it, and classes by name."""

import json

import numpy as np

from app.api.protocols.v2.request import HEADER
from app.api.protocols.v2.response import Output, named_classes, respond_with

VALUES = np.array([[1 / 3, 1e-45, -1.0], [3.4e38, 2.0, 3.0]], np.float32)  # each is kept exactly


def answered(*outputs: tuple[Output, np.ndarray], **more):
    response = respond_with(outputs, **{"id": "", "model": "m", "version": "1", "parameters": {}, **more})
    length = int(response.headers.get(HEADER, len(response.body)))
    return response, json.loads(response.body[:length]), response.body[length:]


def test_classes_are_ranked_as_triton_writes_them_and_where_scores_are_the_same_by_their_logits():
    scores = np.array([[0.5, 1.25, -1.0], [2.0, 2.0, 3.0]], np.float32)
    found = named_classes(scores, scores, ["a", "b:c", "星"], 2)
    assert found.tolist() == [["1.250000:1:b:c", "0.500000:0:a"], ["3.000000:2:星", "2.000000:0:a"]]
    ones, logits = np.ones((1, 3), np.float32), np.array([[18.0, 30.0, 20.0]])
    assert named_classes(ones, logits, "abc", 3).tolist() == [["1.000000:1:b", "1.000000:2:c", "1.000000:0:a"]]


def test_tensors_in_json_are_flat():
    response, head, rest = answered((Output("scores", 0, binary=False), VALUES))
    assert (response.media_type, rest) == ("application/json", b"")
    assert head == {
        "model_name": "m",
        "model_version": "1",
        "outputs": [{"name": "scores", "datatype": "FP32", "shape": [2, 3], "data": VALUES.ravel().tolist()}],
    }


def test_tensors_in_binary_follow_the_head_in_the_order_of_the_outputs():
    texts = ["1:0:é", "2:1:b"]
    response, head, rest = answered(
        (Output("a", 0, binary=True), VALUES),
        (Output("b", 0, binary=False), VALUES),
        (Output("c", 1, binary=True), np.array([[text] for text in texts], np.object_)),
        id="x",
        parameters={"ids": "1,2"},
    )
    assert response.media_type == "application/octet-stream"
    assert (head["id"], head["parameters"]) == ("x", {"ids": "1,2"})
    sizes = [output.get("parameters", {}).get("binary_data_size") for output in head["outputs"]]
    assert sizes == [24, None, 4 + 6 + 4 + 5]
    assert np.frombuffer(rest[:24], "<f4").tolist() == VALUES.ravel().tolist()
    assert rest[24:] == b"\x06\0\0\0" + texts[0].encode() + b"\x05\0\0\0" + texts[1].encode()
    assert head["outputs"][2]["datatype"] == "BYTES"
