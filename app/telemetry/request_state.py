"""What is known of one request, from its first byte to its line in the log."""

import asyncio
import math
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from app.errors import ServiceError
from app.telemetry.stages import Stages

KEY = "request"  # in the state of an ASGI scope


@dataclass(slots=True, kw_only=True)
class RequestState:
    """Each layer that a request passes leaves here what the others need, from the socket inward."""

    arrived: bool = False  # all of its body is here, read or not
    refusal: ServiceError | None = None  # the answer, because what follows in its body is not valid HTTP
    task: asyncio.Task[object] | None = None  # that answers it
    left: bool = False  # the client, before the end of the answer
    stages: Stages = field(init=False)
    request_id: str = ""  # none yet
    key: str | None = None  # the name of the API key that it brought
    deadline: float = math.inf  # seconds of time.monotonic
    images: list[dict[str, object]] = field(default_factory=list)  # facts of each, for the log
    status: int | None = None  # once the answer has begun
    problem: str | None = None  # the kind of the problem that is the answer

    def leave(self) -> None:
        """The client has left: nobody reads an answer, so the work for it ends."""
        self.left = True
        if self.task:
            self.task.cancel()

    @staticmethod
    def of(scope: Any) -> "RequestState":
        """That of an ASGI scope. Without this project's protocol below, the first layer to ask makes it."""
        state = scope.setdefault("state", {})
        if KEY not in state:
            state[KEY] = RequestState()
        found: RequestState = state[KEY]
        return found


in_work: ContextVar[RequestState | None] = ContextVar("in_work", default=None)  # the request that runs this code
