"""GET /model: what is served."""

from fastapi import APIRouter

from app.inference.cpu import FILES
from app.schemas import BatchLatency, ModelResponse
from app.services import Parts

router = APIRouter()


@router.get("/model")
async def model(parts: Parts) -> ModelResponse:
    """What is served, on what, and how fast it has been so far."""
    engine = parts.engine
    return ModelResponse(
        name=parts.bundle.manifest.name,
        digest=parts.bundle.digest,
        manifest=parts.bundle.manifest,
        provider=engine.provider,
        max_batch=parts.settings.max_batch,
        best_batch={graph: engine.best_batch(graph) for graph in FILES},
        latency=[BatchLatency(**latency._asdict()) for latency in engine.latency()],
    )
