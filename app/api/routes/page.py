"""GET /: the web page and its files. The page loads nothing from other servers, and its policy forbids it."""

from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

from app.api.route import CheckedRouter
from app.api.services import services_of
from app.drawing.colors import COLORMAPS

FILES = StaticFiles(directory=Path(__file__).parents[2] / "page")
HEADERS = {
    "Cache-Control": "no-cache",  # checked by ETag each time, so that files of different versions never mix
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}

router = CheckedRouter()


@router.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """The page for a person who opens the service in a browser. Its links are relative to an address that ends in /."""
    services = services_of(request)
    if not request.scope["raw_path"].endswith(b"/"):
        return RedirectResponse(f"{services.settings.root_path}/")
    return await file(request, "index.html")


@router.get("/page/colormaps.png", include_in_schema=False)
async def colormaps(request: Request) -> Response:
    """The colours of the maps, for the page's colour bars: one row of pixels per colormap."""
    response = FILES.file_response(COLORMAPS, COLORMAPS.stat(), request.scope)
    response.headers.update(HEADERS)
    return response


@router.get("/page/{name:path}", include_in_schema=False)
async def file(request: Request, name: str) -> Response:
    """One file of the page: a script, a style, a sample image."""
    response = await FILES.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response
