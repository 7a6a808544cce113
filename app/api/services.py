"""The parts that `create_app` wires together, as the routes see them."""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.api.schemas import ModelName
from app.bundle import Bundle
from app.classifier import Classifier
from app.errors import UnknownAttention
from app.images.intake import Intake
from app.inference.admission import Admission
from app.inference.batcher import Batcher
from app.inference.cpu import OnnxEngine
from app.lifecycle import Lifecycle
from app.maps.distance import RunningDistance
from app.maps.record import Record
from app.maps.verifier import Verifier
from app.settings import Settings
from app.stores.store import Store
from app.telemetry.metrics import Metrics
from app.telemetry.stages import Stages


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    lifecycle: Lifecycle
    admission: Admission
    bundle: Bundle
    engine: OnnxEngine
    batcher: Batcher
    classifier: Classifier
    verifier: Verifier
    store: Store
    metrics: Metrics
    distance: RunningDistance  # over the pictures explained since the start
    cpu_pool: Executor  # draws maps, off the event loop
    intake: Intake

    @property
    def model_name(self) -> ModelName:
        return ModelName(name=self.bundle.manifest.name, digest=self.bundle.digest)

    async def kept(self, id: str, stages: Stages) -> Record:
        """What was kept under an id. Raises UnknownAttention, StoreUnavailable."""
        with stages.time("store"):
            record = await self.store.get(id)
        if record is None:
            raise UnknownAttention
        return record


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _stages(request: Request) -> Stages:
    stages: Stages = request.state.stages
    return stages


Parts = Annotated[Services, Depends(_services)]
Timing = Annotated[Stages, Depends(_stages)]
