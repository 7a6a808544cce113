"""What the routes depend on: the parts that `create_app` builds, and what they take from a request."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from app.api.body.json_reader import JsonReader
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
from app.maps.covering import Fill
from app.maps.explainer import Explainer
from app.maps.record import KeptImage, Maps
from app.settings import Settings
from app.stores.id import ID_PATTERN
from app.telemetry.metrics import Metrics

MapsId = Annotated[str | SkipJsonSchema[None], Field(examples=["rfQjy4XodVjlp0sAFHEF_w"])]
MapsPath = Annotated[str | SkipJsonSchema[None], Field(examples=["/attention/rfQjy4XodVjlp0sAFHEF_w"])]


class ModelName(BaseModel):
    name: str = Field(examples=["shapes"])
    digest: str = Field(examples=["7ce40dda0241d756"])  # sha256 of the bundle's manifest


class ImageAnswer(BaseModel):
    """What every answer about one classified image begins with."""

    id: str
    model: ModelName


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    lifecycle: Lifecycle
    admission: Admission  # of images, but for large ones while they are decoded
    json_reader: JsonReader
    bundle: Bundle
    model: Model
    classifier: Classifier
    scoring: Scoring
    coverer: Coverer
    explainer: Explainer
    metrics: Metrics
    drawings: Drawings

    @property
    def model_name(self) -> ModelName:
        return ModelName(name=self.bundle.manifest.name, digest=self.bundle.digest)

    def attention_path(self, id: str | None) -> str | None:
        """Where the maps are that are kept under `id`."""
        return f"{self.settings.root_path}/attention/{id}" if id else None

    async def kept(self, id: str, request: Request) -> KeptImage:
        """The image that is kept under an id. Raises UnknownAttention, StoreUnavailable."""
        if not ID_PATTERN.fullmatch(id):
            raise UnknownAttention
        return await self.explainer.find(id, request.state.stages)

    async def maps(self, id: str, kept: KeptImage, request: Request, choice: Choice | None = None) -> Maps:
        """Its maps, with evidence for the labels that are chosen. Raises InvalidParameter, StoreUnavailable, and what a
        run of the model raises.
        """
        classes = classes_for(choice or Choice(), self.scoring.labels, kept.classes)
        state = request.state
        return await self.explainer.maps(id, kept, classes, deadline=state.deadline, stages=state.stages)


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


ChoiceQuery = Annotated[Choice, Query()]  # the map that the query asks for
FillQuery = Annotated[
    Fill, Query(description="What covers a patch: the mean colour, black, grey, or a Gaussian blur one patch wide")
]
ServicesDep = Annotated[Services, Depends(_services)]
