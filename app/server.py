"""uvicorn, leaving in the order that load balancers need: not ready first, then no new connections, then gone.

Left to itself uvicorn closes its socket at the signal, when every balancer still sends requests, and exits 0 whatever
happened (vllm-project/vllm#48966).
"""

import logging
import os
import signal
import threading
import time
from types import FrameType

import uvicorn

from app.lifecycle import Lifecycle

log = logging.getLogger(__name__)

CLOSE = (b"connection", b"close")
GRACE_S = 5.0  # for the engine and the worker threads to end, after the last request
FLUSH_S = 1.0  # for the answers of a failed service to leave, and for probes to see why
EXIT_FAILED = 70  # EX_SOFTWARE of sysexits.h
EXIT_OVERDUE = 75  # EX_TEMPFAIL


class Server(uvicorn.Server):
    """Serves until SIGTERM or SIGINT, and ends the process by itself when the service fails.

    At SIGTERM it serves on for `drain_delay_s`, at SIGINT it does not; then what is in work has `drain_timeout_s` of
    `config` to finish. A second signal ends the process at once, and so does shutting down for far too long.
    """

    def __init__(self, config: uvicorn.Config, *, lifecycle: Lifecycle, drain_delay_s: float) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._drain_delay_s = drain_delay_s
        self._drain_at: float | None = None
        lifecycle.on_failure = lambda: _exit_after(FLUSH_S, EXIT_FAILED)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._drain_at is not None:
            os._exit(128 + sig)
        delay = 0.0 if sig == signal.SIGINT else self._drain_delay_s
        self._drain_at = time.monotonic() + delay
        self._lifecycle.leave()
        _exit_after(delay + (self.config.timeout_graceful_shutdown or 0) + GRACE_S, EXIT_OVERDUE)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if self._drain_at is not None:
            self._close_after_each_answer()
            if time.monotonic() >= self._drain_at:
                self._lifecycle.start_draining()
                self.should_exit = True
        return await super().on_tick(counter)

    def _close_after_each_answer(self) -> None:
        """Whoever keeps a connection is sent to open another, which may lead to another replica."""
        if CLOSE not in self.config.encoded_headers:
            self.config.encoded_headers.append(CLOSE)
            self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]


def _exit_after(seconds: float, code: int) -> None:
    """From a thread of its own: the event loop and the engine may both be stuck by then."""
    timer = threading.Timer(seconds, os._exit, [code])
    timer.daemon = True
    timer.start()
