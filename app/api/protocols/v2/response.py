"""What `/infer` answers in the Open Inference Protocol: a head in JSON, and tensors in it or after it."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from starlette.responses import Response

from app.api.protocols.v2.request import HEADER

Values = npt.NDArray[np.float32] | npt.NDArray[np.object_]  # (n, width); objects are texts


class Output(NamedTuple):
    """An output as the answer will have it."""

    name: str
    classes: int  # to name for each image; 0 for the tensor itself
    binary: bool


def named_classes(
    values: npt.NDArray[np.float32], logits: npt.NDArray[np.floating], labels: Sequence[str], most: int
) -> npt.NDArray[np.object_]:
    """(n, most) texts "value:index:label", the most likely of each row first (Triton, `src/classification.cc`)."""
    best = np.argsort(-logits, axis=1, kind="stable")[:, :most]  # scores may be rounded to the same number
    rows = [[f"{row[i]:.6f}:{i}:{labels[i]}" for i in chosen] for row, chosen in zip(values, best, strict=True)]
    return np.array(rows, np.object_)


def respond_with(
    outputs: Sequence[tuple[Output, Values]], *, id: str | None, model: str, version: str, parameters: dict[str, str]
) -> Response:
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if id:
        head["id"] = id
    if parameters:
        head["parameters"] = parameters
    head["outputs"] = tensors = []
    buffers = []
    for output, values in outputs:
        datatype = "BYTES" if values.dtype == np.object_ else "FP32"
        tensor: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": values.shape}
        if output.binary:
            buffers.append(_binary(values))
            tensor["parameters"] = {"binary_data_size": len(buffers[-1])}
        else:
            tensor["data"] = values.ravel().tolist()
        tensors.append(tensor)
    text = json.dumps(head, ensure_ascii=False).encode()
    if not buffers:
        return Response(text, media_type="application/json")
    return Response(b"".join((text, *buffers)), media_type="application/octet-stream", headers={HEADER: str(len(text))})


def _binary(values: Values) -> bytes:
    """Little-endian; before each text its length in 4 bytes."""
    if values.dtype != np.object_:
        return values.astype("<f4").tobytes()
    encoded = [str(text).encode() for text in values.ravel()]
    return b"".join(part for text in encoded for part in (len(text).to_bytes(4, "little"), text))
