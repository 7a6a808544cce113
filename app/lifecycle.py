"""Whether this process should get requests. Flags: any thread raises them, none is ever lowered."""

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

STOPPING = "The service is stopping. Send this request again."


class Lifecycle:
    """Ready until it leaves or fails. `create_app` makes it when the model is warm, so there is no state before ready.

    ready      a balancer may send requests
    leaving    a balancer should send no more, but what still comes is served
    draining   no connection is accepted; what is in work is finished, but for what takes long
    live       false once the service has failed: only a new process helps
    """

    def __init__(self) -> None:
        self.leaving = False
        self.draining = False
        self.failure: str | None = None
        self.on_failure: Callable[[], None] = lambda: None  # called once, in the thread that found the failure

    @property
    def ready(self) -> bool:
        return self.reason is None

    @property
    def live(self) -> bool:
        return self.failure is None

    @property
    def reason(self) -> str | None:
        """Why it is not ready, as a public sentence."""
        return self.failure or (STOPPING if self.leaving else None)

    def leave(self) -> None:
        self.leaving = True

    def start_draining(self) -> None:
        self.leaving = self.draining = True

    def fail(self, reason: str) -> None:
        """For good. `reason` is a public sentence; only the first one counts."""
        if self.failure is None:
            self.failure = reason
            log.critical("the service has failed: %s", reason)
            self.on_failure()
