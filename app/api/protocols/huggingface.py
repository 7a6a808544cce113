"""POST / and POST /predict: what Hugging Face's clients send for image classification and for zero-shot image
classification, and the list that they expect.

`InferenceClient(base_url=...)` uses an address as it is; `/predict` is Inference Endpoints' other path
(huggingface-inference-toolkit, `webservice_starlette.py`). The best label comes first.
"""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, Field

from app.api.description import image_request
from app.api.image_request import ImageRequest
from app.api.phrases import Labels, Prompt, among, check_classes
from app.api.results import aside_if_many
from app.api.route import CheckedRouter
from app.api.routes.probes import readyz
from app.api.services import services_of
from app.errors import ServiceError
from app.http.problems import problems
from app.inference.digits import digits
from app.inference.phrases import PROMPT
from app.inference.scoring import TOP_K, Logits, Scoring


class PipelineParameters(BaseModel):
    """The parameters of transformers' pipeline for image classification."""

    top_k: Annotated[int | None, Field(ge=1, description=f"Labels to return at most; {TOP_K} by default")] = None
    function_to_apply: Annotated[
        Literal["softmax", "sigmoid", "none"] | None,
        Field(description="Turns logits into scores; by default the function that the model was trained for"),
    ] = None


class ZeroShotParameters(PipelineParameters):
    """And those of the pipeline for labels that come with the request."""

    candidate_labels: Annotated[
        Labels | None, Field(description="Labels to choose among, for bundles with a text tower")
    ] = None
    hypothesis_template: Annotated[
        Prompt | None, Field(description=f'The sentence in which they are read; "{PROMPT}" by default')
    ] = None


class LabelScore(BaseModel):
    label: str = Field(examples=["star"])
    score: float = Field(examples=[0.9997])


router = CheckedRouter(tags=["Hugging Face"])
router.add_api_route("/health", readyz, include_in_schema=False)

described = partial(
    router.post,
    summary="Classify one image",
    responses=problems(400, 408, 409, 413, 415, 422),
    openapi_extra=image_request(ZeroShotParameters),
)


@described("/", operation_id="predict_at_root")
@described("/predict")
async def predict(request: Request) -> list[LabelScore]:
    """The image is the body, or base64 in JSON under `inputs`. A form or JSON may have the parameters too.

    No maps are kept.
    """
    services = services_of(request)
    brought = ImageRequest(request, services)
    images, parameters = await brought.read(ZeroShotParameters, max_images=1)
    labels = parameters.candidate_labels
    check_classes(services.bundle.manifest, labels)
    compare = await among(labels, parameters.hypothesis_template, services, request) if labels else None
    (outcome,) = await brought.run(images, attention=False, success="classified")
    if isinstance(outcome, ServiceError):
        raise outcome
    if compare:
        return scored(compare.scoring, compare.logits(outcome.embedding), parameters, top_k=len(compare.labels))
    rank = partial(scored, services.scoring, outcome.logits, parameters)
    return await aside_if_many(rank, labels=parameters.top_k or TOP_K)


def scored(scoring: Scoring, logits: Logits, parameters: PipelineParameters, *, top_k: int = TOP_K) -> list[LabelScore]:
    """The most likely labels, `top_k` of them by default. For the function `none` the score is the logit."""
    function = parameters.function_to_apply
    if function and function != "none":
        scoring = replace(scoring, kind=function)
    return [
        LabelScore(label=best.label, score=digits(logits[best.index]) if function == "none" else best.score)
        for best in scoring.rank(logits, top_k=parameters.top_k or top_k)
    ]
