"""The paths of images and probes, which paths need no API key, and which paths each port answers."""

import re

from starlette.requests import HTTPConnection

from app.errors import NotFound

PROBES = frozenset({"/livez", "/readyz", "/health", "/v2/health/live", "/v2/health/ready"})
METRICS = "/metrics"
HOME = "/"
PREDICT = "/predict"
CLASSIFY = "/classify"
EMBED = "/embed"
UPLOADS = frozenset({HOME, PREDICT, CLASSIFY, EMBED})
INFER = "/v2/models/{name}/infer"
INFER_VERSION = "/v2/models/{name}/versions/{version}/infer"
_INFER = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route)) for route in (INFER, INFER_VERSION)}
PUBLIC = PROBES | {HOME, "/docs", "/openapi.json"}
PUBLIC_FOLDERS = ("/page/", "/static-offline-docs/")


def is_public(method: str, path: str) -> bool:
    """Probes, the page and the description of the API: they are the same on every server and cost nothing."""
    return method in ("GET", "HEAD") and (path in PUBLIC or path.startswith(PUBLIC_FOLDERS))


def upload_route(path: str) -> str | None:
    """The template of a path to which images are sent, else None."""
    return path if path in UPLOADS else next((route for route in _INFER if _INFER[route].fullmatch(path)), None)


def check_port(request: HTTPConnection, *, metrics_port: int) -> None:
    """If metrics have a port of their own, that port answers metrics and probes only, and no other port has metrics.

    Raises NotFound for a path that the request's port does not answer.
    """
    path, port = request.scope["path"], request.scope["server"][1]
    if metrics_port and path not in PROBES and (port == metrics_port) != (path == METRICS):
        raise NotFound("There is nothing at this path.")
