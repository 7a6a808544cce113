"""Which other sites may use the service from a browser: the CORS protocol of WHATWG Fetch, section 3.3.

starlette's CORSMiddleware cannot do this. Outside of the door it would answer before the door's limits, and inside it
would not see the door's refusals, nor those of the protocol below.
"""

from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response

ANY = "*"
METHODS = "GET, HEAD, POST"
ALLOWED_HEADERS = (  # * is all but Authorization, also those that libraries add; old browsers need the names
    "*, Accept, Authorization, Content-Type, If-None-Match, Inference-Header-Content-Length, traceparent, tracestate, "
    "X-API-Key, X-Request-ID, X-Request-Timeout"
)
EXPOSED_HEADERS = (  # beside those that browsers always show
    "Accept-Encoding, ETag, Inference-Header-Content-Length, Retry-After, Server-Timing, WWW-Authenticate, "
    "X-Model-Digest, X-Request-ID"
)
MAX_AGE_S = 600  # for which a browser may remember the answer to a preflight


class Cors:
    """The origins whose pages may read answers. Credentials of the browser, such as cookies, are never allowed.

    Without origins it adds nothing, and no request is a preflight.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)

    def is_preflight(self, request: HTTPConnection) -> bool:
        """Whether the browser of an allowed origin asks here if it may send a request."""
        return (
            request.scope["method"] == "OPTIONS"
            and "Access-Control-Request-Method" in request.headers
            and self._allowed(request) is not None
        )

    def preflight(self) -> Response:
        """The answer to every preflight. `complete` adds the origin."""
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": METHODS,
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
                "Access-Control-Max-Age": str(MAX_AGE_S),
            },
        )

    def complete(self, headers: MutableHeaders, request: HTTPConnection) -> None:
        """Add to the answer's `headers` what lets the page that sent `request` read it."""
        if self._origins and ANY not in self._origins:
            headers.add_vary_header("Origin")
        if allowed := self._allowed(request):
            headers["Access-Control-Allow-Origin"] = allowed
            headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS

    def _allowed(self, request: HTTPConnection) -> str | None:
        if ANY in self._origins:
            return ANY
        origin = request.headers.get("Origin")
        return origin if origin in self._origins else None
