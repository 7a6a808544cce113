"""POST /v2/models/{name}/infer: the Open Inference Protocol's way to classify images.

The images go through the same queue as those of /classify. The protocol has no error for one image of several, so the
first that cannot be used fails the request.
"""

import time
from functools import partial

import numpy as np
from fastapi import APIRouter, Request, Response

from app.api.image_request import ImageRequest
from app.api.protocols.v2.head import Head, RequestedOutput, count, flag
from app.api.protocols.v2.model import VERSION, NamedDep, max_batch, model_name, tensors
from app.api.protocols.v2.request import HEADER, Expected, read_request
from app.api.protocols.v2.response import Output, Values, named_classes, respond_with
from app.api.render import BINARY
from app.api.results import aside_if_many
from app.api.route import CheckedRoute
from app.api.services import Services, services_of
from app.classifier import Outcome, Processed
from app.door.problems import problems
from app.errors import MalformedRequest
from app.telemetry.request_state import RequestState

router = APIRouter(tags=["Open Inference Protocol"], route_class=CheckedRoute)
described = partial(
    router.post,
    summary="Classify images in tensors",
    responses=problems(400, 404, 408, 413, 415, 422),
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": BINARY}}}},
)


@described("/v2/models/{name}/versions/{version}/infer", operation_id="infer_of_version")
@described("/v2/models/{name}/infer")
async def infer(request: Request, name: NamedDep) -> Response:
    """The images are UINT8 pixels of the network's input size, or BYTES of encoded images.

    The parameter `attention` keeps them for maps; the answer's parameter `ids` has their ids, with commas between.
    """
    services = services_of(request)
    expected = Expected(name=name, size=services.bundle.manifest.image.size, max_batch=max_batch(services))
    state = RequestState.of(request.scope)
    head, images = await read_request(
        request.stream(),
        services.json_reader,
        head_length=request.headers.get(HEADER),
        expected=expected,
        deadline=state.deadline,
    )
    outputs = wanted(head, services)
    attention = flag(head.parameters, "attention")
    if microseconds := count(head.parameters, "timeout"):
        state.deadline = min(state.deadline, time.monotonic() + microseconds / 1e6)
    outcomes = await ImageRequest(request, services).run(images, attention=attention, success="classified")
    processed = _succeeded(outcomes)
    found = await aside_if_many(
        lambda: [(output, _tensor(services, processed, output)) for output in outputs],
        labels=len(processed) * max(output.classes for output in outputs),
    )
    return respond_with(
        found,
        id=head.id,
        model=name,
        version=VERSION,
        parameters={"ids": ",".join(image.id or "" for image in processed)} if attention else {},
    )


def _succeeded(outcomes: list[Outcome]) -> list[Processed]:
    """Raises the failure of an image, and of one among several says which it is."""
    processed = []
    for place, outcome in enumerate(outcomes, start=1):
        if isinstance(outcome, Processed):
            processed.append(outcome)
        elif len(outcomes) == 1:
            raise outcome
        else:
            raise outcome.saying(detail=f"Image {place} of {len(outcomes)}: {outcome.detail}")
    return processed


def wanted(head: Head, services: Services) -> list[Output]:
    """The outputs that the request names, or the declared one. Raises MalformedRequest."""
    known = tensors(services)
    binary = flag(head.parameters, "binary_data_output")
    requested = head.outputs or [RequestedOutput(name=next(iter(known)))]
    outputs = []
    for name, parameters in ((output.name, output.parameters) for output in requested):
        if name not in known:
            raise MalformedRequest(f"unexpected inference output {name!r} for model {model_name(services)!r}")
        classes = count(parameters, "classification")
        if "classification" in parameters and not classes:
            raise MalformedRequest("The parameter classification must be at least 1.")
        if classes and name == "embedding":
            raise MalformedRequest(
                "An embedding has no classes to name: ask for the classification of scores or logits."
            )
        as_binary = flag(parameters, "binary_data", default=binary)
        outputs.append(Output(name, classes=min(classes, known[name]), binary=as_binary))
    if len({output.name for output in outputs}) < len(outputs):
        raise MalformedRequest("An output is asked for twice.")
    return outputs


def _tensor(services: Services, images: list[Processed], output: Output) -> Values:
    if output.name == "embedding":
        return np.stack([image.embedding for image in images]).astype(np.float32)
    logits = np.stack([image.logits for image in images])
    rows = logits if output.name == "logits" else [services.scoring.scores(row) for row in logits]
    values = np.asarray(rows, np.float32)
    return named_classes(values, logits, services.scoring.labels, output.classes) if output.classes else values
