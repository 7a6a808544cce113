"""POST /v2/models/{name}/infer: the Open Inference Protocol's way to classify images.

The images go through the same queue as those of /classify. The protocol has no error for one image of several, so the
first that cannot be used fails the request.
"""

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi import Request, Response

from app.api.image_request import ImageRequest
from app.api.protocols.v2.model import VERSION, NamedDep, max_batch, tensors
from app.api.protocols.v2.request import HEADER, LENGTH_BYTES, Head, RequestedOutput, read_request
from app.api.render import ANY_FILE, BINARY
from app.api.results import aside_if_many
from app.api.route import CheckedRouter
from app.api.services import Services, services_of
from app.bundle import TOKENS
from app.classifier import Outcome, Processed
from app.errors import MalformedRequest
from app.http.problems import problems
from app.inference.tokens import Which, arranged
from app.telemetry.request_state import RequestState

Output = tuple[str, bool, int]  # its name, whether it is sent in binary, and how many classes it names; 0: its tensor
OF_CLASSES = ("scores", "logits")
OF_TOKENS: dict[str, Which] = {"patches": "patches", "tokens": "all"}
Values = npt.NDArray[np.float32] | npt.NDArray[np.object_]  # (n, ...); objects are texts

router = CheckedRouter(tags=["Open Inference Protocol"])
described = partial(
    router.post,
    summary="Classify images in tensors",
    responses=problems(400, 404, 408, 413, 415, 422) | {200: {"content": ANY_FILE}},
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": BINARY}}}},
)


@described("/v2/models/{name}/versions/{version}/infer", operation_id="infer_of_version")
@described("/v2/models/{name}/infer")
async def infer(request: Request, name: NamedDep) -> Response:
    """The images are UINT8 pixels of the network's input size, or BYTES of encoded images.

    The parameter `attention` keeps them for maps; the answer's parameter `ids` has their ids, with commas between.
    """
    services = services_of(request)
    brought = ImageRequest(request, services)
    height_width = services.bundle.manifest.image.size
    head, images = await read_request(brought, model=name, size=height_width, max_batch=max_batch(services))
    outputs = wanted(head, tensors(services))
    if microseconds := head.parameters.timeout:
        state = RequestState.of(request.scope)
        state.deadline = min(state.deadline, time.monotonic() + microseconds / 1e6)
    array = TOKENS if any(name in OF_TOKENS for name, _, _ in outputs) else None
    outcomes = await brought.run(images, attention=head.parameters.attention, tokens=array, success="classified")
    processed = _succeeded(outcomes)
    found = await aside_if_many(
        lambda: [(name, binary, _tensor(services, processed, name, most)) for name, binary, most in outputs],
        labels=len(processed) * max(most for _, _, most in outputs),
    )
    ids = {"ids": ",".join(image.id or "" for image in processed)} if head.parameters.attention else None
    about = {"model_name": name, "model_version": VERSION, "id": head.id, "parameters": ids}
    return answer({name: value for name, value in about.items() if value}, found)


def _succeeded(outcomes: list[Outcome]) -> list[Processed]:
    """Raises the failure of an image, and of one among several says which it is."""
    for place, outcome in enumerate(outcomes, start=1):
        if not isinstance(outcome, Processed):
            named = outcome.saying(detail=f"Image {place} of {len(outcomes)}: {outcome.detail}")
            raise named if len(outcomes) > 1 else outcome
    return [outcome for outcome in outcomes if isinstance(outcome, Processed)]


def wanted(head: Head, shapes: Mapping[str, tuple[int, ...]]) -> list[Output]:
    """The outputs that the request names, or the declared one. Raises MalformedRequest."""
    outputs: dict[str, Output] = {}
    for output in head.outputs or [RequestedOutput(name=next(iter(shapes)))]:
        name, parameters = output.name, output.parameters
        if name not in shapes or name in outputs:
            raise MalformedRequest(f"The request may name each output once: {', '.join(shapes)}.")
        if parameters.classification and name not in OF_CLASSES:
            raise MalformedRequest(f"The parameter classification is not for the output {name}: it has no classes.")
        binary = head.parameters.binary_data_output if parameters.binary_data is None else parameters.binary_data
        if name in OF_TOKENS and not binary:
            raise MalformedRequest(f"The output {name} is binary data alone: set its parameter binary_data.")
        outputs[name] = name, binary, min(parameters.classification or 0, shapes[name][0])
    return [*outputs.values()]


def _tensor(services: Services, images: list[Processed], name: str, most: int) -> Values:
    if name == "embedding":
        return np.stack([image.embedding for image in images]).astype(np.float32)
    if name in OF_TOKENS:
        arrays = [image.tokens for image in images if image.tokens is not None]
        return arranged(arrays, services.bundle.manifest, OF_TOKENS[name])
    logits = np.stack([image.logits for image in images])
    rows = logits if name == "logits" else [services.scoring.scores(row) for row in logits]
    values = np.asarray(rows, np.float32)
    return named_classes(values, logits, services.scoring.labels, most) if most else values


def named_classes(
    values: npt.NDArray[np.float32], logits: npt.NDArray[np.floating], labels: Sequence[str], most: int
) -> npt.NDArray[np.object_]:
    """(n, most) texts "value:index:label", the most likely of each row first (Triton, `src/classification.cc`)."""
    best = np.argsort(-logits, axis=1, kind="stable")[:, :most]  # scores may be rounded to the same number
    rows = [[f"{row[i]:.6f}:{i}:{labels[i]}" for i in chosen] for row, chosen in zip(values, best, strict=True)]
    return np.array(rows, np.object_)


def answer(head: dict[str, Any], outputs: Sequence[tuple[str, bool, Values]]) -> Response:
    """`head` in JSON, and tensors in it or, little-endian, after it."""
    described, buffers = [], []
    for name, binary, values in outputs:
        datatype = "BYTES" if values.dtype == np.object_ else "FP32"
        tensor: dict[str, Any] = {"name": name, "datatype": datatype, "shape": values.shape}
        if binary:
            texts = [str(text).encode() for text in values.ravel()] if datatype == "BYTES" else []
            elements = [len(text).to_bytes(LENGTH_BYTES, "little") + text for text in texts]
            buffers.append(b"".join(elements) if elements else values.astype("<f4").tobytes())
            tensor["parameters"] = {"binary_data_size": len(buffers[-1])}
        else:
            tensor["data"] = values.ravel().tolist()
        described.append(tensor)
    text = json.dumps({**head, "outputs": described}, ensure_ascii=False).encode()
    if not buffers:
        return Response(text, media_type="application/json")
    return Response(b"".join((text, *buffers)), media_type="application/octet-stream", headers={HEADER: str(len(text))})
