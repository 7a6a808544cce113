"""Waits while the service is busy or away."""

import asyncio
import random
import time
from typing import TypeVar

import httpx

from app.client.answers import Problem, ServiceProblem
from app.client.client import AsyncClient
from app.client.requests import Call

BUSY = {429, 502, 503, 504}  # the service, or the balancer before it, may answer later
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
T = TypeVar("T")


class GivenUp(Exception):
    """The service was busy or away for too long, or what it says is of no use; the message tells which."""


class Patient:
    """Asks again until there is an answer. Belongs to one event loop."""

    def __init__(self, client: AsyncClient, *, patience_s: float) -> None:
        """`patience_s` is how long no request at all may be answered."""
        self._client = client
        self._patience_s = patience_s
        self._answered = time.monotonic()  # when the service last did

    async def ask(self, call: Call[T]) -> T | Problem:
        """The answer, or the problem that asking again would not change. Raises GivenUp."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                answer = await self._client.ask(call)
            except ServiceProblem as refused:
                if refused.problem.status == httpx.codes.UNAUTHORIZED:
                    raise GivenUp("the service wants an API key: give it with --key or VIT_API_KEY") from None
                if refused.problem.status not in BUSY:
                    self._answered = time.monotonic()
                    return refused.problem
                reason, after_s = str(refused), refused.retry_after_s or 0.0
            except httpx.TransportError as error:
                reason, after_s = f"no answer: {error or type(error).__name__}", 0.0
            else:
                self._answered = time.monotonic()
                return answer
            if time.monotonic() - self._answered > self._patience_s:
                said = f"nothing was answered for {self._patience_s:g} seconds ({reason})"
                raise GivenUp(f"{said}. The same command goes on from here")
            await asyncio.sleep(max(after_s, random.uniform(0.5, 1) * wait_s))
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
