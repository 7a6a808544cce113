"""The URL prefix of the service, VIT_ROOT_PATH, for a host name that it shares with others."""

from collections.abc import Iterable

from app.door.paths import PUBLIC, PUBLIC_FOLDERS
from app.errors import CannotStart


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
