"""Which paths need no API key, and which paths each port answers."""

from starlette.requests import HTTPConnection

from app.errors import NotFound

PROBES = frozenset({"/livez", "/readyz"})
METRICS = "/metrics"
UPLOADS = frozenset({"/classify"})
PUBLIC = PROBES | {"/", "/docs", "/openapi.json"}
PUBLIC_FOLDERS = ("/page/", "/static-offline-docs/")


def is_public(path: str) -> bool:
    """Probes, the page and the description of the API: they are the same on every server and cost nothing."""
    return path in PUBLIC or path.startswith(PUBLIC_FOLDERS)


class Listeners:
    """If metrics have a port of their own, that port answers metrics and probes only."""

    def __init__(self, *, metrics_port: int) -> None:
        self._metrics_port = metrics_port

    def check(self, request: HTTPConnection) -> None:
        """Raises NotFound for a path that this port does not answer."""
        if not self._metrics_port:
            return
        path = request.scope["path"]
        at_metrics_port = request.scope["server"][1] == self._metrics_port
        if path not in PROBES and at_metrics_port != (path == METRICS):
            raise NotFound("There is nothing at this path.")
