"""Which paths need no API key, and which paths each port answers."""

from starlette.requests import HTTPConnection

from app.errors import NotFound

PROBES = frozenset({"/livez", "/readyz"})
METRICS = "/metrics"
UPLOADS = frozenset({"/classify", "/embed"})
PUBLIC = PROBES | {"/", "/docs", "/openapi.json"}
PUBLIC_FOLDERS = ("/page/", "/static-offline-docs/")


def is_public(path: str) -> bool:
    """Probes, the page and the description of the API: they are the same on every server and cost nothing."""
    return path in PUBLIC or path.startswith(PUBLIC_FOLDERS)


def check_port(request: HTTPConnection, *, metrics_port: int) -> None:
    """If metrics have a port of their own, that port answers metrics and probes only, and no other port has metrics.

    Raises NotFound for a path that the request's port does not answer.
    """
    path, port = request.scope["path"], request.scope["server"][1]
    if metrics_port and path not in PROBES and (port == metrics_port) != (path == METRICS):
        raise NotFound("There is nothing at this path.")
