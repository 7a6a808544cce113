"""app/door/answer.py: what is added to an answer on its way out."""

import asyncio

from starlette.requests import HTTPConnection

from app.door.answer import DOCS_POLICY, HEADERS, POLICY, Answer
from app.door.cors import Cors

CLOSED = Cors([])


def sent(headers: dict[str, str], *bodies: bytes, path: str = "/classify", closing: bool = False, cors: Cors = CLOSED):
    """The header fields and the body that arrive."""
    messages = []

    async def send(message):
        messages.append(message)

    request = HTTPConnection({"type": "http", "path": path, "headers": [(b"origin", b"https://app.example")]})

    async def answer():
        out = Answer(send, request=request, request_id="r-1", cors=cors, closing=lambda: closing)
        assert not out.started
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await out.send({"type": "http.response.start", "status": 200, "headers": raw})
        assert out.started
        for i, body in enumerate(bodies):
            await out.send({"type": "http.response.body", "body": body, "more_body": i < len(bodies) - 1})

    asyncio.run(answer())
    start, *parts = messages
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    fields = {name.decode().title(): value.decode() for name, value in start["headers"]}
    return fields, b"".join(part["body"] for part in parts)


def test_every_answer_has_a_name_and_the_security_headers():
    fields, body = sent({"Content-Type": "application/json"}, b"{}")
    assert fields["X-Request-Id"] == "r-1"
    assert HEADERS.items() <= fields.items()
    assert "Connection" not in fields
    assert body == b"{}"


def test_what_a_route_says_of_itself_stays():
    fields, _ = sent({"Cache-Control": "private, max-age=9", "Content-Security-Policy": "default-src 'self'"}, b"")
    assert (fields["Cache-Control"], fields["Content-Security-Policy"]) == ("private, max-age=9", "default-src 'self'")


def test_only_the_description_of_the_api_may_run_scripts_in_the_page():
    assert sent({}, b"", path="/docs")[0]["Content-Security-Policy"] == DOCS_POLICY
    assert sent({}, b"", path="/docs/x")[0]["Content-Security-Policy"] == POLICY


def test_a_connection_that_cannot_go_on_is_said_to_close():
    assert sent({}, b"", closing=True)[0]["Connection"] == "close"


def test_other_answers_are_passed_on_as_they_come():
    _, body = sent({"Content-Type": "image/png"}, b"one", b"two")
    assert body == b"onetwo"


def test_an_allowed_origin_may_read_every_answer():
    fields, _ = sent({"Vary": "Accept"}, b"", cors=Cors(["https://app.example"]))
    assert (fields["Access-Control-Allow-Origin"], fields["Vary"]) == ("https://app.example", "Accept, Origin")
    assert "Access-Control-Allow-Origin" not in sent({}, b"")[0]
