"""A real redis-server on a socket in a folder; it writes nothing to disk."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

PATIENCE_S = 2  # a service's defaults are shorter, and a busy machine can be slower than they allow


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"
        self.settings = {"store": self.url, "store_timeout_s": PATIENCE_S}

    def start(self, *options: str) -> None:
        """Start it and wait until it answers; `options` as on its command line."""
        command = ["redis-server", "--port", "0", "--unixsocket", str(self._socket), "--save", "", *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        with self.client(retry=Retry(ConstantBackoff(0.02), 1000)) as client:
            client.ping()

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._socket.unlink(missing_ok=True)

    def freeze(self) -> None:
        """It accepts connections and requests and never answers."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def client(self, **options: Any) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=5, **options)


@contextmanager
def running_redis(folder: Path, *options: str) -> Iterator[RedisServer]:
    """An empty one. Skips the test on a machine without redis-server."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    server = RedisServer(folder)
    server.start(*options)
    try:
        yield server
    finally:
        server.stop()
