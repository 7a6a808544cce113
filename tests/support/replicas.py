"""Several real servers on loopback that are stopped, killed and started again."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.support.processes import eventually
from tests.support.server import Process, free_port
from tests.support.traffic import Traffic


class Replica:
    """`python -m app` on a port that it keeps over restarts."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.port = free_port()
        self._settings = {**settings}
        self.process = Process(port=self.port, **settings)

    def restart(self, **changes: Any) -> int:
        """Stop it as an orchestrator does, and start it again at once, with other settings if given. Its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.process.end()
        self._settings |= changes
        self.revive()
        return code

    def kill(self) -> None:
        self.process.end()

    def revive(self) -> None:
        """Raises RuntimeError if it does not start."""
        self.process = Process(port=self.port, **self._settings)
        self.process.wait_until_ready()


@contextmanager
def replicas(count: int, **settings: Any) -> Iterator[list[Replica]]:
    """`count` replicas that are ready; `store="redis://..."` sets VIT_STORE. All are killed at the end."""
    with ExitStack() as stack:
        running = []
        for _ in range(count):
            replica = Replica(settings)
            stack.callback(replica.kill)
            running.append(replica)
        for replica in running:
            replica.process.wait_until_ready()
        yield running


def restart_all(running: list[Replica], **changes: Any) -> None:
    """Restart each once the one before is ready, with other settings if given. Raises RuntimeError when one does not
    exit with 0.
    """
    for replica in running:
        if code := replica.restart(**changes):
            raise RuntimeError(f"a replica exited with {code}")


def kill_at_work(replica: Replica, traffic: Traffic) -> None:
    """Kill it while a request waits in it: it is stopped (SIGSTOP) first."""
    replica.process.send_signal(signal.SIGSTOP)
    eventually(lambda: traffic.longest_wait >= 0.5)
    replica.kill()
