"""GET /: the web page."""

from pathlib import Path

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

PAGE = Path(__file__).parents[1] / "page.html"
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'"

router = APIRouter()


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """What this is, for a person who opens it in a browser."""
    return FileResponse(PAGE, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})
