"""POST /v2/models/{name}/infer: the Open Inference Protocol's way to classify images.

The images go through the same queue as those of /classify. The protocol has no error for one image of several, so the
first that cannot be used fails the request.
"""

import time

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request, Response

from app.api.each_image import BINARY, processed
from app.api.problems import Refusal, problem_of, problems
from app.api.services import Services, ServicesDep, StagesDep
from app.api.v2.model import VERSION, NamedDep, max_batch, tensors
from app.api.v2.head import Asked, Head, count, flag
from app.api.v2.request import HEADER, Expected, read_request
from app.api.v2.response import Output, named_classes, respond_with
from app.classifier import Processed
from app.errors import MalformedRequest, ServiceError
from app.inference.labels import scores

BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": BINARY}},
    }
}

router = APIRouter(tags=["Open Inference Protocol"])

PROBLEMS = problems(400, 404, 408, 413, 415, 422, 500, 503)


@router.post("/v2/models/{name}/infer", openapi_extra=BODY, responses=PROBLEMS)
@router.post(
    "/v2/models/{name}/versions/{version}/infer",
    openapi_extra=BODY,
    responses=PROBLEMS,
    operation_id="infer_of_version",
)
async def infer(request: Request, services: ServicesDep, stages: StagesDep, name: NamedDep) -> Response:
    """Scores of images, which are UINT8 pixels of the network's input size, or BYTES of encoded images.

    The parameter `attention` keeps their maps, and the answer's parameter `ids` has their ids, with commas between.
    """
    expected = Expected(name=name, size=services.bundle.manifest.image.size, max_batch=max_batch(services))
    head, images = await read_request(request.stream(), head_length=request.headers.get(HEADER), expected=expected)
    asked = wanted(head, services)
    attention = flag(head.parameters, "attention") or False
    if microseconds := count(head.parameters, "timeout"):
        request.state.deadline = min(request.state.deadline, time.monotonic() + microseconds / 1e6)
    outcomes = await processed(request, services, stages, images, attention=attention, outcome="classified")
    done = []
    for place, of_one in enumerate(outcomes, start=1):
        if isinstance(of_one, ServiceError):
            problem = problem_of(of_one)
            if len(outcomes) > 1:
                said = f"Image {place} of {len(outcomes)}: {of_one.detail}"
                problem = problem.model_copy(update={"detail": said})
            raise Refusal(problem, of_one.headers)
        done.append(of_one)
    binary = flag(head.parameters, "binary_data_output") or False
    return respond_with(
        [_output(services, done, output, binary=binary) for output in asked],
        id=head.id,
        model=name,
        version=VERSION,
        parameters={"ids": ",".join(str(of_one.id) for of_one in done)} if attention else {},
    )


def wanted(head: Head, services: Services) -> list[Asked]:
    """The outputs that the request names, or the declared one. Raises MalformedRequest for one that there is not."""
    known, model = tensors(services), services.bundle.manifest.name
    for name in head.parameters:
        if name.startswith("triton_"):
            raise MalformedRequest(f"The parameter {name} is reserved.")
    if not head.outputs:
        return [Asked(name=next(iter(known)))]
    names = [output.name for output in head.outputs]
    for output in head.outputs:
        if output.name not in known:
            raise MalformedRequest(f"unexpected inference output {output.name!r} for model {model!r}")
        if output.classification and output.name == "embedding":
            raise MalformedRequest(
                "An embedding has no classes to name: ask for the classification of scores or logits."
            )
        if "classification" in output.parameters and not output.classification:
            raise MalformedRequest("The parameter classification has to be at least 1.")
    if len(set(names)) < len(names):
        raise MalformedRequest("An output is asked for twice.")
    return head.outputs


def _output(services: Services, done: list[Processed], asked: Asked, *, binary: bool) -> Output:
    values = np.stack([_values(services, of_one, asked.name) for of_one in done])
    binary = binary if asked.binary is None else asked.binary
    if not asked.classification:
        return Output(asked.name, values, (len(values), values.shape[1]), binary)
    most = min(asked.classification, values.shape[1])
    texts = named_classes(values, services.bundle.manifest.labels, most)
    return Output(asked.name, texts, (len(values), most), binary)


def _values(services: Services, done: Processed, name: str) -> npt.NDArray[np.float32]:
    """(classes,) or (features,)."""
    if name == "embedding":
        return done.embedding.astype(np.float32)
    assert done.logits is not None  # else only the embedding is known
    if name == "logits":
        return done.logits.astype(np.float32)
    manifest = services.bundle.manifest
    return scores(done.logits, manifest.score, manifest.temperature).astype(np.float32)
