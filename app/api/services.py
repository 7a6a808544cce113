"""What the routes depend on: the parts that `create_app` builds."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from fastapi import Request

from app.api.render import Drawings
from app.api.results import ModelName
from app.bundle import Bundle, Graph
from app.classifier import Classifier
from app.errors import DeadlineExceeded, UnknownAttention
from app.http.admission import Admission
from app.images.preprocess import PreprocessedImage
from app.inference.engine import NOTHING_ASKED, Asked, Outputs
from app.inference.model import Model
from app.inference.phrases import Phrases
from app.inference.scoring import Logits, Scoring
from app.lifecycle import Lifecycle
from app.maps.attention import choose
from app.maps.attention_map import AttentionMap
from app.maps.choice import Choice, classes_for
from app.maps.direction import Vectors, asked_for, similarity
from app.maps.explainer import Explainer
from app.maps.judgement import Judgement
from app.maps.measurement import Measurement
from app.maps.occlusion import Fill, Occlusion
from app.maps.record import KeptImage, Maps
from app.settings import Settings
from app.stores.id import ID_PATTERN
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    lifecycle: Lifecycle
    admission: Admission
    bundle: Bundle
    judged: Judgement | None
    model: Model
    classifier: Classifier
    scoring: Scoring
    phrases: Phrases
    occlusion: Occlusion
    explainer: Explainer
    measurement: Measurement
    metrics: Metrics
    drawings: Drawings

    @cached_property
    def model_name(self) -> ModelName:
        return ModelName(name=self.bundle.manifest.name, digest=self.bundle.digest)

    def attention_path(self, id: str | None) -> str | None:
        """The path of the maps of the image `id`."""
        return f"{self.settings.root_path}/attention/{id}" if id else None

    async def kept(self, id: str, request: Request) -> KeptImage:
        """The image that is kept under an id. Raises UnknownAttention, StoreUnavailable."""
        if not ID_PATTERN.fullmatch(id):
            raise UnknownAttention
        return await self.explainer.find(id, RequestState.of(request.scope).stages)

    async def maps(self, id: str, kept: KeptImage, request: Request, choice: Choice | None = None) -> Maps:
        """The maps of a kept image, with evidence for the chosen labels. Raises InvalidParameter, StoreUnavailable, and
        what a run of the model raises.
        """
        asked = Asked(classes_for(choice or Choice(), self.scoring.labels, kept.classes))
        return await self.explained(id, kept, asked, request)

    async def explained(self, id: str, kept: KeptImage, asked: Asked, request: Request) -> Maps:
        """The maps of a kept image, with evidence for what is `asked`. Raises as `maps`."""
        state = RequestState.of(request.scope)
        return await self.explainer.maps(id, kept, asked, deadline=state.deadline, stages=state.stages)

    async def explain(self, kept: KeptImage, asked: Asked, request: Request) -> Maps:
        """The same for an image that is not kept."""
        return Maps.of(await self.run("explain", kept, request, asked))

    async def run(self, graph: Graph, kept: KeptImage, request: Request, asked: Asked = NOTHING_ASKED) -> Outputs:
        """The outputs of a graph for a kept image. Raises what admission and the batcher raise, and
        DeadlineExceeded.
        """
        state = RequestState.of(request.scope)
        running = self.explainer.run(graph, kept, asked=asked, deadline=state.deadline, stages=state.stages)
        try:
            async with asyncio.timeout(state.deadline - time.monotonic()):
                return await running
        except TimeoutError:
            raise DeadlineExceeded from None

    async def map(
        self, id: str, kept: KeptImage, request: Request, choice: Choice, direction: Vectors | None = None
    ) -> AttentionMap:
        """The map of a kept image, for a `direction` (1, features) where there is one. Raises what `maps`, `choose` and
        `Measurement` raise.
        """
        manifest = self.bundle.manifest
        if choice.method == "measured":
            of = kept.classes[0] if direction is None else direction
            return await self.measured(kept.image, choice, of, request, id=id)
        if direction is None:
            return choose(await self.maps(id, kept, request, choice), manifest, choice)
        (asked,) = asked_for(direction, manifest)
        return similarity(await self.explained(id, kept, asked, request), manifest, choice, direction)

    async def measured(
        self, image: PreprocessedImage, choice: Choice, of: int | Vectors, request: Request, *, id: str | None = None
    ) -> AttentionMap:
        """The map that `Measurement` makes until the request's deadline. Raises what that raises."""
        deadline = RequestState.of(request.scope).deadline
        (measured,) = await self.measurement.maps(image.pixels, choice, [of], id=id, deadline=deadline)
        return measured

    async def occluded(
        self,
        image: PreprocessedImage,
        covered: npt.NDArray[np.bool_],
        read: Callable[[Logits], T],
        request: Request,
        *,
        fill: Fill,
    ) -> list[T]:
        """What `read` makes of the logits of the image for each row of `covered` (images, patches), as `Occlusion` runs
        them until the request's deadline. Raises what that raises.
        """
        deadline = RequestState.of(request.scope).deadline
        fills = (fill,) * len(covered)
        return await self.occlusion.run(
            image.pixels, covered, lambda answer: read(answer["logits"]), fills=fills, deadline=deadline
        )


def services_of(request: Request) -> Services:
    """The services of the application. Not a dependency: FastAPI would solve that anew for each request."""
    services: Services = request.app.state.services
    return services
