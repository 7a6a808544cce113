"""GET /livez, /readyz and /metrics: what a load balancer and Prometheus ask. None waits for the model."""

from fastapi import Request, Response

from app.api.route import CheckedRouter
from app.api.services import services_of
from app.errors import Unavailable
from app.http.problems import problems
from app.telemetry.metrics import EXPOSITION_TYPE

router = CheckedRouter(tags=["probes"])


@router.get("/livez", summary="Is the process alive?", responses=problems())
async def livez(request: Request) -> dict[str, str]:
    """200 while the process is alive. 503 once it has failed and only a restart helps."""
    check(services_of(request).lifecycle.failure)
    return {"status": "alive"}


@router.get("/readyz", summary="Does the process take requests?", responses=problems())
async def readyz(request: Request) -> dict[str, str]:
    """200 while the process takes requests. 503 once it is stopping or has failed. Before the model is warm, nothing
    listens at the port.
    """
    check(services_of(request).lifecycle.reason)
    return {"status": "ready"}


@router.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Counters and histograms of this process, in Prometheus's text format."""
    services = services_of(request)
    return Response(services.metrics.exposition(), media_type=EXPOSITION_TYPE)


def check(reason: str | None) -> None:
    """Raises Unavailable if there is a reason for it."""
    if reason:
        raise Unavailable(reason)
