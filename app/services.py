"""The parts that `create_app` wires together, as the routes see them."""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.batcher import Batcher
from app.bundle import Bundle
from app.classifier import Classifier
from app.decoders import Decoders
from app.distance import RunningDistance
from app.engine import OnnxEngine
from app.schemas import ModelName
from app.settings import Settings
from app.store import MemoryStore
from app.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class Services:
    settings: Settings
    bundle: Bundle
    engine: OnnxEngine
    batcher: Batcher
    classifier: Classifier
    verifier: Verifier
    store: MemoryStore
    distance: RunningDistance  # over the pictures explained since the start
    cpu_pool: Executor  # draws maps, off the event loop
    decoders: Decoders

    @property
    def model_name(self) -> ModelName:
        return ModelName(name=self.bundle.manifest.name, digest=self.bundle.digest)


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Parts = Annotated[Services, Depends(_services)]
