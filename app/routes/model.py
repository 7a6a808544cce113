"""GET /model: what is served."""

from fastapi import APIRouter

from app.schemas import BatchLatency, ModelResponse
from app.services import Parts

router = APIRouter()


@router.get("/model")
async def model(parts: Parts) -> ModelResponse:
    """What is served, on what, and how fast it was at warm-up."""
    return ModelResponse(
        name=parts.bundle.manifest.name,
        digest=parts.bundle.digest,
        manifest=parts.bundle.manifest,
        provider=parts.provider,
        max_batch=parts.settings.max_batch,
        latency=[BatchLatency(**latency._asdict()) for latency in parts.latency],
    )
