"""Whether this process should get requests. Any thread can set a flag, and no flag is ever cleared."""

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

STOPPING = "The service is stopping. Send this request again."


class Lifecycle:
    """Ready until it leaves or fails. Nothing listens before the model is warm, so there is no state before ready.

    leaving    a load balancer should send no more requests, but the service still answers them
    draining   no connection is accepted; requests in progress are finished, except for those that take long
    failure    why the service has failed, as a public sentence: only a new process helps
    """

    def __init__(self) -> None:
        self.leaving = False
        self.draining = False
        self.failure: str | None = None
        self._on_failure: Callable[[], None] = lambda: None

    @property
    def reason(self) -> str | None:
        """Why the service is not ready, as a public sentence; None when it is ready."""
        return self.failure or (STOPPING if self.leaving else None)

    def leave(self) -> None:
        self.leaving = True

    def start_draining(self) -> None:
        self.leaving = self.draining = True

    def fail(self, reason: str) -> None:
        """Fail for good. `reason` is a public sentence; only the first one counts."""
        if self.failure is None:
            self.failure = reason
            log.critical("the service has failed: %s", reason)
            self._on_failure()

    def when_failed(self, call: Callable[[], None]) -> None:
        """Call this in the thread that calls `fail`, or at once if the service has failed already. In between, both."""
        self._on_failure = call
        if self.failure is not None:
            call()
