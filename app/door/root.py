"""The URL prefix of the service, VIT_ROOT_PATH, for a host name that it shares with others."""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from app.door.paths import PUBLIC, PUBLIC_FOLDERS
from app.errors import CannotStart


class RootPathError(CannotStart):
    """VIT_ROOT_PATH cannot be told from a path of the service."""


def check_root_path(root_path: str, *, paths: Iterable[str]) -> None:
    """`paths` are those of the routes. Raises RootPathError if a path below `root_path` could also be one of them."""
    first = root_path.split("/")[1:2]
    if first in [path.split("/")[1:2] for path in (*paths, *PUBLIC, *PUBLIC_FOLDERS)]:
        raise RootPathError(f"VIT_ROOT_PATH is {root_path}, but /{first[0]} is a path of the service itself.")


def below(root_path: str, path: str) -> str:
    """What follows `root_path` in `path`: `/` for `root_path` itself. A path that does not begin with it stays."""
    if root_path and path == root_path:
        return "/"
    return path.removeprefix(root_path) if path.startswith(f"{root_path}/") else path


class RootPath:
    """The outermost ASGI layer: takes VIT_ROOT_PATH off, once, where the proxy in front has not.

    Keys, limits and ports are decided by the path that this leaves. The door hands it on with the prefix again, because
    a framework expects ASGI's `path` to begin with its `root_path`.
    """

    def __init__(self, app: ASGIApp, *, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["path"] = below(self._root_path, scope["path"])
        await self._app(scope, receive, send)
