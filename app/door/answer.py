"""The header fields of every response, whatever made it."""

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection

from app.door.cors import Cors
from app.door.header import REQUEST_ID

POLICY = "default-src 'none'; frame-ancestors 'none'"
DOCS_POLICY = (  # Swagger UI starts with a script in the page, and nothing of a user is ever in that page
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def end_line(headers: MutableHeaders) -> bool:
    """Whether the answer is JSON, to whose end a line break belongs. It is in the length then."""
    is_json = headers.get("Content-Type") == "application/json" and "Content-Length" in headers
    if is_json:
        headers["Content-Length"] = str(int(headers["Content-Length"]) + 1)
    return is_json


def complete(
    headers: MutableHeaders, request: HTTPConnection, *, request_id: str, path: str | None, cors: Cors, closing: bool
) -> None:
    """Add the request's id, the security headers that a route has not set, those of CORS, and `Connection: close` when
    the connection will close. `path` has no prefix of VIT_ROOT_PATH.
    """
    headers[REQUEST_ID] = request_id
    if path == "/docs":
        headers["Content-Security-Policy"] = DOCS_POLICY
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    cors.complete(headers, request)
    if closing:
        headers["Connection"] = "close"
