"""What the routes depend on: the parts that `create_app` builds, and what they take from a request."""

from dataclasses import dataclass
from functools import cached_property

from fastapi import Request

from app.api.answers import ModelName
from app.api.disconnect import cancel_on_disconnect
from app.api.drawings import Drawings
from app.bundle import Bundle
from app.classifier import Classifier
from app.door.admission import Admission
from app.errors import UnknownAttention
from app.inference.model import Model
from app.inference.scoring import Scoring
from app.lifecycle import Lifecycle
from app.maps.choice import Choice, classes_for
from app.maps.coverer import Coverer
from app.maps.explainer import Explainer
from app.maps.record import KeptImage, Maps
from app.settings import Settings
from app.stores.id import ID_PATTERN
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    lifecycle: Lifecycle
    admission: Admission  # of images, but for large ones while they are decoded
    bundle: Bundle
    model: Model
    classifier: Classifier
    scoring: Scoring
    coverer: Coverer
    explainer: Explainer
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
        what a run of the model raises. Raises ClientDisconnect if the client leaves.
        """
        classes = classes_for(choice or Choice(), self.scoring.labels, kept.classes)
        state = RequestState.of(request.scope)
        making = self.explainer.maps(id, kept, classes, deadline=state.deadline, stages=state.stages)
        return await cancel_on_disconnect(request, making)


def services_of(request: Request) -> Services:
    """The services of the application. Not a dependency: FastAPI would solve that anew for each request."""
    services: Services = request.app.state.services
    return services
