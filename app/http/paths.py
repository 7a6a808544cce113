"""The paths of probes, which need no API key, which each port answers, and what is below VIT_ROOT_PATH."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.errors import CannotStart, NotFound

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

PROBES = frozenset({"/livez", "/readyz", "/health", "/v2/health/live", "/v2/health/ready"})
METRICS = "/metrics"
PUBLIC = PROBES | {"/", "/docs", "/openapi.json"}
PUBLIC_FOLDERS = ("/page/", "/static-offline-docs/")


def is_public(method: str, path: str) -> bool:
    """Probes, the page and the description of the API: they are the same on every server and cost nothing."""
    return method in ("GET", "HEAD") and (path in PUBLIC or path.startswith(PUBLIC_FOLDERS))


def check_port(request: "HTTPConnection", *, metrics_port: int) -> None:
    """If metrics have a port of their own, that port answers metrics and probes only, and no other port has metrics.

    Raises NotFound for a path that the request's port does not answer.
    """
    path, port = request.scope["path"], request.scope["server"][1]
    if metrics_port and path not in PROBES and (port == metrics_port) != (path == METRICS):
        raise NotFound("There is nothing at this path.")


def check_root_path(root_path: str, *, paths: Iterable[str]) -> None:
    """`paths` are those of the routes. Raises CannotStart if a path below `root_path` could also be one of them."""
    first = root_path.split("/")[1:2]
    if first in [path.split("/")[1:2] for path in (*paths, *PUBLIC, *PUBLIC_FOLDERS)]:
        raise CannotStart(f"VIT_ROOT_PATH is {root_path}, but /{first[0]} is a path of the service itself.")


def below(root_path: str, path: str) -> str:
    """What follows `root_path` in `path`: `/` for `root_path` itself. A path that does not begin with it stays."""
    if root_path and path == root_path:
        return "/"
    return path.removeprefix(root_path) if path.startswith(f"{root_path}/") else path
