"""Raw bytes to the real server: invalid or slow HTTP gets an answer and never a reset."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.integration.conftest import KEY, KEY_IN_FILE, metric
from tests.support.connection import Answer, Connection, message, post
from tests.support.processes import PATIENCE_S, eventually
from tests.support.server import Process, running

RECEIVE_S = 2
ORIGIN = "https://app.example"


@pytest.fixture(scope="module")
def server():
    with running(engine="onnxruntime", receive_timeout_s=RECEIVE_S, cors_origins=ORIGIN) as server:
        yield server
        assert server.poll() is None
        assert "Traceback" not in server.output()
        assert "unhandled failure" not in server.output()


@pytest.fixture(autouse=True)
def served_afterwards(server, star):
    """Whatever has been sent, the next client gets its label."""
    yield
    answer = ask(server, post(star))
    assert answer.json()["results"][0]["predictions"][0]["label"] == "star"


def replies(server: Process, data: bytes) -> list[Answer]:
    """All answers to a client that sends `data` and waits until the server closes."""
    with Connection(server.port) as connection:
        connection.send(data)
        return connection.answers()


def ask(server: Process, data: bytes) -> Answer:
    """The first answer that is not 100 Continue."""
    with Connection(server.port) as connection:
        connection.send(data)
        while (answer := connection.answer()) and answer.status < 200:
            pass
    assert answer is not None
    return answer


def check_problem(answer: Answer) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status
    assert answer.json()["instance"] == f"urn:request:{answer.headers['x-request-id']}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers


CHUNKED = "Transfer-Encoding: chunked"
UPGRADE = ("Connection: Upgrade", "Upgrade: h2c")


def classify(*fields: str, body: bytes = b"") -> bytes:
    return message("POST /classify", *fields, body=body)


def chunked(*chunks: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return classify(CHUNKED, body=body + last)


BROKEN = {
    "length and chunks": (classify("Content-Length: 5", CHUNKED, body=b"0\r\n\r\n"), 400),
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", 400),
    "two hosts": (message("GET /livez", "Host: y"), 400),
    "TLS": (bytes.fromhex("1603010200010001fc0303") + bytes(range(256)), 400),
    "a field of a megabyte": (message("GET /livez", "X: " + "x" * 2**20), 431),
    "101 fields": (message("GET /livez", *["X: y"] * 100), 431),
    "501 members of lists": (message("GET /livez", "X: " + "a," * 249, "Y: " + "b;" * 252), 431),
    "a path of 64 KiB": (message("GET /" + "x" * 2**16), 431),
    "a trailer of a megabyte": (chunked(b"hello", last=b"0\r\nX: " + b"x" * 2**20 + b"\r\n\r\n"), 431),
    "a tunnel": (message("CONNECT example.com:443"), 400),
    "an upgrade with length and chunks": (classify(*UPGRADE, "Content-Length: 5", CHUNKED, body=b"hello"), 400),
}


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_http_is_refused_and_the_connection_closed(server, name):
    data, status = BROKEN[name]
    answer = ask(server, data)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    check_problem(answer)


@pytest.mark.parametrize("origin", [ORIGIN, "https://evil.example"])
def test_pages_of_allowed_origins_read_answers_and_refusals_and_send_any_header(server, star, origin):
    allowed = origin if origin == ORIGIN else None
    for answer in (ask(server, post(star, f"Origin: {origin}")), ask(server, post(b"x", f"Origin: {origin}"))):
        assert (answer.headers.get("access-control-allow-origin"), answer.headers["vary"]) == (allowed, "Origin")
    asks = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, x-anything")
    preflight = ask(server, message("OPTIONS /classify", f"Origin: {origin}", *asks))
    assert (preflight.status, preflight.headers.get("access-control-allow-origin")) == (
        200 if allowed else 400,
        allowed,
    )
    assert preflight.headers["access-control-allow-headers"] == "authorization, x-anything"


def test_a_probe_in_http_1_0_needs_no_host(server):
    assert ask(server, b"GET /livez HTTP/1.0\r\n\r\n").status == 200


def test_the_largest_header_that_is_allowed(server):
    assert ask(server, message("GET /livez", *["X: y"] * 98)).status == 200
    assert ask(server, message("GET /livez", "X: " + "x" * 15_000)).status == 200


LARGE = 33 * 2**20
REFUSED = {
    "an upgrade with too much": (classify(*UPGRADE, f"Content-Length: {LARGE}", body=b"hello"), 413),
    "chunks with too much": (chunked(*[bytes(2**20)] * 33), 413),
    "a hundred thousand chunks of a byte": (classify(CHUNKED, body=b"1\r\nx\r\n" * 10**5 + b"0\r\n\r\n"), 415),
    "five megabytes before a boundary": (post(b"x" * 5 * 2**20, "Content-Type: multipart/form-data; boundary=b"), 400),
}


@pytest.mark.parametrize("name", REFUSED)
def test_valid_http_is_refused_with_a_problem(server, name):
    data, status = REFUSED[name]
    answer = ask(server, data)
    assert answer.status == status
    check_problem(answer)


@pytest.mark.parametrize("path", ["/model", "/page/main.js", "/classify"])
def test_head_is_get_without_a_body(server, path):
    with Connection(server.port) as connection:
        connection.send(message(f"GET {path}"))
        got = connection.answer()
        connection.send(message(f"HEAD {path}") + message("GET /livez"))
        head, alive = connection.answer(to="HEAD"), connection.answer()
    assert (head.status, head.body, head.headers["content-type"]) == (got.status, b"", got.headers["content-type"])
    assert (got.status, alive.json()) == (405 if path == "/classify" else 200, {"status": "alive"})


def test_slow_and_idle_connections_are_closed_and_delay_no_other_client(server, star):
    with ExitStack() as opened, ThreadPoolExecutor(4) as pool:
        slow, idle, blank, *senders = (opened.enter_context(Connection(server.port)) for _ in range(203))
        deadline = time.monotonic() + 20
        slow.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        blank.send(b"\r\n")
        for sender in senders:
            sender.send(classify("Content-Length: 1000", body=b"x"))
        good = list(pool.map(lambda _: ask(server, post(star)).status, range(20)))
        for sender in senders:
            sender.send(b"x")
        assert good == [200] * 20
        assert [[answer.status for answer in sender.answers()] for sender in senders] == [[408]] * 200
        (answer,) = slow.answers()
        assert answer.status == 408
        check_problem(answer)
        assert idle.answers() == blank.answers() == []
        assert time.monotonic() < deadline


def test_100_continue_is_sent_only_if_the_body_is_wanted(server, star):
    with Connection(server.port) as connection:
        connection.send(classify(f"Content-Length: {len(star)}", "Expect: 100-continue"))
        assert connection.answer().status == 100
        connection.send(star)
        assert connection.answer().status == 200
    assert ask(server, classify(f"Content-Length: {LARGE}", "Expect: 100-continue")).status == 413


@pytest.mark.parametrize(
    "fields", [(), UPGRADE, ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhl")]
)
def test_ten_pipelined_requests_are_answered_in_order(server, fields):
    requests = [message("GET /livez", f"X-Request-ID: {i}", *fields) for i in range(10)]
    with Connection(server.port) as connection:
        connection.send(b"".join(requests))
        assert [connection.answer().headers["x-request-id"] for _ in requests] == [str(i) for i in range(10)]


def test_a_client_that_disconnects_before_the_end_of_its_body_is_counted_as_499(server, star):
    def counted(status: int) -> float:
        return metric(server.port, f'vit_requests_total{{method="POST",route="/classify",status="{status}"}}')

    gone, malformed = counted(499), counted(400)
    for left, whole in enumerate((post(star), post(bytes(200_000))), 1):
        with Connection(server.port) as connection:
            connection.send(whole[:-1])
            eventually(lambda: metric(server.port, "vit_requests_in_flight") == 2)  # with the one that asks
        eventually(lambda left=left: counted(499) == gone + left)
    replies(server, classify(CHUNKED, body=b"5\r\nhello\r\nno chunk"))
    eventually(lambda: counted(400) == malformed + 1)
    assert counted(499) == gone + 2


@pytest.mark.parametrize("framing", ["declared", "chunked"])
@pytest.mark.parametrize("at", [-1, 0, 500])
def test_an_image_may_come_with_an_upgrade(server, star, framing, at):
    """As Java's HttpClient sends it, and curl --http2, in two parts: cut `at` bytes behind the head, or in it."""
    h2c = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(star), star)
    data = {"declared": post(star, *h2c), "chunked": classify(CHUNKED, *h2c, body=chunked)}[framing]
    cut = data.index(b"\r\n\r\n") + 4 + at
    with Connection(server.port) as connection:
        for _ in range(2):
            connection.send(data[:cut])
            time.sleep(0.05)
            connection.send(data[cut:])
            assert connection.answer().json()["results"][0]["predictions"][0]["label"] == "star"


def test_a_connection_goes_on_after_a_refusal_if_the_body_came_with_its_head(server, star):
    with Connection(server.port) as connection:
        for _ in range(2):
            connection.send(post(star, "X-Request-Timeout: x"))
            answer = connection.answer()
            assert (answer.status, "connection" in answer.headers) == (422, False)


def test_keys_and_a_port_for_metrics(guarded, metrics_port, star):
    refused = ask(guarded, post(star))
    assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer realm="vit-serve"')
    check_problem(refused)
    for header in (f"X-API-Key: {KEY}", f"Authorization: Bearer {KEY_IN_FILE}"):
        assert ask(guarded, post(star, header)).status == 200
    assert ask(guarded, message("GET /metrics", f"X-API-Key: {KEY}")).status == 404
    side = f"http://127.0.0.1:{metrics_port}"
    assert [httpx.get(f"{side}/{path}", timeout=PATIENCE_S).status_code for path in ("readyz", "model")] == [200, 404]
