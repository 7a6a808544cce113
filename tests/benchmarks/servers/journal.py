"""What has been measured so far, so that a run that was interrupted goes on where it ended."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Journal:
    """A file with a line for each finding: its key and the value, in JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, Any] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self._found[json.dumps(key)] = value

    def has(self, key: list[str | int]) -> bool:
        return json.dumps(key) in self._found

    def once(self, key: list[str | int], find: Callable[[], Any]) -> Any:
        """The finding of this key: that of the file, else that of `find`, which the file then has unless it is None."""
        name = json.dumps(key)
        if name not in self._found and (value := find()) is not None:
            with self._path.open("a") as file:
                file.write(json.dumps([key, value]) + "\n")
            self._found[name] = value
        return self._found.get(name)
