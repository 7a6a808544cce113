"""GET /livez, /readyz and /metrics: what a load balancer and Prometheus ask. None waits for the model."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from app.api.problems import problems
from app.api.services import Parts
from app.errors import Unavailable

router = APIRouter()


@router.head("/livez", include_in_schema=False)
@router.get("/livez", responses=problems(503))
async def livez(parts: Parts) -> dict[str, str]:
    """The process is alive; 503 once it has failed and only a restart helps."""
    if failure := parts.lifecycle.failure:
        raise Unavailable(failure)
    return {"status": "alive"}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=problems(503))
async def readyz(parts: Parts) -> dict[str, str]:
    """The model is loaded and warm (before that, nothing listens), and the process is neither stopping nor failed."""
    if reason := parts.lifecycle.reason:
        raise Unavailable(reason)
    return {"status": "ready"}


@router.get("/metrics", include_in_schema=False)
async def metrics(parts: Parts) -> Response:
    """Counters and histograms of this process, in Prometheus's text format."""
    return Response(parts.metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
