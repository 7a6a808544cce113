"""GET /: the web page and the files it is made of. It asks no other server for anything, and the policy says so."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.staticfiles import StaticFiles

FILES = StaticFiles(directory=Path(__file__).parents[1] / "page")
HEADERS = {
    "Cache-Control": "no-cache",  # asked again by ETag each time, so that no two files of different versions meet
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}

router = APIRouter()


@router.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """The page for a person who opens the service in a browser."""
    return await file(request, "index.html")


@router.get("/page/{name:path}", include_in_schema=False)
async def file(request: Request, name: str) -> Response:
    """One file of the page: scripts, styles, sample pictures."""
    response = await FILES.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
