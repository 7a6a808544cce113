"""An answer to a request whose body is not wanted."""

import asyncio

from fastapi import Response
from starlette.types import Receive, Scope, Send

DRAIN_S = 5.0  # how long a client may go on sending after it has been answered


class DrainingResponse(Response):
    """Answers at once, then reads and drops the rest of the body for a while before the connection closes.

    Closing with unread bytes makes TCP reset the connection, and a client that is still sending would lose the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(DRAIN_S):
                while (message := await receive())["type"] == "http.request" and message.get("more_body"):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})
