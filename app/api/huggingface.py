"""POST / and POST /predict: what Hugging Face's clients send for image classification, and the list that they expect.

`InferenceClient(base_url=...)` uses an address as it is; `/predict` is Inference Endpoints' other path
(huggingface-inference-toolkit, `webservice_starlette.py`). The best label comes first.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from app.api.classify import TOP_K
from app.api.each_image import IMAGE_BODY, processed
from app.api.json_images import Function, Parameters, read_json
from app.api.probes import readyz
from app.api.services import Services, ServicesDep, StagesDep
from app.api.uploads import is_json, read_images
from app.classifier import Processed
from app.door.problems import problems
from app.errors import NoClasses, ServiceError


class LabelScore(BaseModel):
    label: str
    score: float


router = APIRouter(tags=["Hugging Face"])
router.add_api_route("/health", readyz, methods=["GET", "HEAD"], include_in_schema=False)

PROBLEMS = problems(400, 408, 409, 413, 415, 422, 500, 503)


@router.post("/", responses=PROBLEMS, openapi_extra=IMAGE_BODY, operation_id="predict_at_root")
@router.post("/predict", responses=PROBLEMS, openapi_extra=IMAGE_BODY)
async def predict(
    request: Request,
    services: ServicesDep,
    stages: StagesDep,
    top_k: Annotated[int | None, Query(ge=1, description=f"Labels to return at most; {TOP_K} by default")] = None,
    function_to_apply: Annotated[
        Function | None,
        Query(description="Turns logits into scores; by default the function that the model was trained for"),
    ] = None,
) -> list[LabelScore]:
    """Classify one image: the body, or base64 in JSON under `inputs`. `parameters` in JSON override those of the query.
    No maps are kept.
    """
    if not services.bundle.manifest.labels:
        raise NoClasses
    asked = Parameters(top_k=top_k, function_to_apply=function_to_apply)
    if is_json(request):
        images, said = await read_json(request, services.json_reader, max_images=1)
        asked = asked.model_copy(update=said.model_dump(exclude_none=True))
    else:
        images = await read_images(request, services.json_reader, max_images=1)
    (done,) = await processed(request, services, stages, images, attention=False, outcome="classified")
    if isinstance(done, ServiceError):
        raise done
    return ranked(services, done, asked)


def ranked(services: Services, done: Processed, asked: Parameters) -> list[LabelScore]:
    """The most likely labels. For the function `none` the score is the logit."""
    scoring, function = services.scoring, asked.function_to_apply
    if function and function != "none":
        scoring = replace(scoring, kind=function)
    return [
        LabelScore(label=best.label, score=float(done.logits[best.index]) if function == "none" else best.score)
        for best in scoring.rank(done.logits, top_k=asked.top_k or TOP_K)
    ]
