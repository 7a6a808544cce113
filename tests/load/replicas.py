"""Several real servers on loopback that are stopped, killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.benchmarks.server import free_port, is_ready
from tests.load.traffic import Traffic

START_TIMEOUT_S = 120.0
NEVER_FULL = {
    "max_queue_wait_s": "60",
    "request_timeout_s": "60",
}  # requests wait and none is refused


class Replica:
    """`python -m app` on a port that it keeps over restarts."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.port = free_port()
        self._environment = {**os.environ, "VIT_DEVICE": "cpu", "VIT_LOG_LEVEL": "warning", **variables}
        self.process = self._start()

    def restart(self) -> int:
        """Stop it as an orchestrator does, and start it again at once. Its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process = self._start()
        self.wait_until_ready()
        return code

    def kill(self) -> None:
        """End it at once: kill -9."""
        self.process.kill()
        self.process.wait()

    def revive(self) -> None:
        self.process = self._start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Raises RuntimeError when it does not start."""
        until = time.monotonic() + START_TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < until:
            if is_ready(self.port):
                return
            time.sleep(0.05)
        raise RuntimeError("a replica did not start")

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**self._environment, "VIT_PORT": str(self.port)}
        return subprocess.Popen([sys.executable, "-m", "app"], env=environment)


@contextmanager
def replicas(count: int, **variables: str) -> Iterator[list[Replica]]:
    """`count` replicas that are ready; `store="redis://..."` sets VIT_STORE. All are killed at the end."""
    with ExitStack() as stack:
        running = []
        for _ in range(count):
            replica = Replica({f"VIT_{name.upper()}": value for name, value in variables.items()})
            stack.callback(replica.kill)
            running.append(replica)
        for replica in running:
            replica.wait_until_ready()
        yield running


def restart_all(running: list[Replica]) -> None:
    """Restart each once the one before is ready. Raises RuntimeError when one does not exit with 0."""
    for replica in running:
        if code := replica.restart():
            raise RuntimeError(f"a replica exited with {code}")


def kill_at_work(replica: Replica, traffic: Traffic) -> None:
    """Kill it while a request waits in it: it is stopped (SIGSTOP) first."""
    replica.process.send_signal(signal.SIGSTOP)
    while traffic.longest_wait < 0.5:
        time.sleep(0.02)
    replica.kill()
