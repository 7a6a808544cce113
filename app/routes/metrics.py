"""GET /metrics: what Prometheus scrapes."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from app.services import Parts

router = APIRouter()


@router.get("/metrics", include_in_schema=False)
async def metrics(parts: Parts) -> Response:
    """Counters and histograms of this process, in Prometheus's text format."""
    return Response(parts.metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
