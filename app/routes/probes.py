"""What a load balancer asks."""

from fastapi import APIRouter

router = APIRouter()


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process is alive."""
    return {"status": "alive"}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz")
async def readyz() -> dict[str, str]:
    """The model is loaded and warm: before that, nothing listens."""
    return {"status": "ready"}
