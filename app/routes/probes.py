"""What a load balancer asks. Answered by the event loop alone, however much work there is."""

from fastapi import APIRouter

from app.api.problems import problems
from app.errors import Unavailable
from app.services import Parts

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
