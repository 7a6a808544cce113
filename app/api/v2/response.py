"""What `/infer` answers in the Open Inference Protocol: a head in JSON, and tensors in it or after it."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from starlette.responses import Response

from app.api.v2.request import HEADER


class Output(NamedTuple):
    """One tensor of the answer."""

    name: str
    values: npt.NDArray[np.float32] | list[str]  # (n, width), or n rows of texts
    shape: tuple[int, int]
    binary: bool


def named_classes(values: npt.NDArray[np.float32], labels: Sequence[str], most: int) -> list[str]:
    """`most` classes of each row, "value:index:label", the highest value first (Triton, `src/classification.cc`)."""
    best = np.argsort(-values, axis=1, kind="stable")[:, :most]
    return [f"{row[i]:.6f}:{i}:{labels[i]}" for row, chosen in zip(values, best, strict=True) for i in chosen]


def respond_with(
    outputs: Sequence[Output], *, id: str, model: str, version: str, parameters: dict[str, str]
) -> Response:
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if id:
        head["id"] = id
    if parameters:
        head["parameters"] = parameters
    head["outputs"] = tensors = []
    buffers = []
    for output in outputs:
        datatype = "BYTES" if isinstance(output.values, list) else "FP32"
        tensor: dict[str, Any] = {"name": output.name, "datatype": datatype, "shape": output.shape}
        if output.binary:
            buffers.append(_binary(output.values))
            tensor["parameters"] = {"binary_data_size": len(buffers[-1])}
        else:
            tensor["data"] = output.values if isinstance(output.values, list) else output.values.ravel().tolist()
        tensors.append(tensor)
    text = json.dumps(head, ensure_ascii=False).encode()
    if not buffers:
        return Response(text, media_type="application/json")
    return Response(b"".join((text, *buffers)), media_type="application/octet-stream", headers={HEADER: str(len(text))})


def _binary(values: npt.NDArray[np.float32] | list[str]) -> bytes:
    """Little-endian; before each text its length in 4 bytes."""
    if not isinstance(values, list):
        return values.astype("<f4").tobytes()
    encoded = [text.encode() for text in values]
    return b"".join(part for text in encoded for part in (len(text).to_bytes(4, "little"), text))
