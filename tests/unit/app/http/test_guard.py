"""app/http/guard.py: what is refused before a body is read, and which ids and deadlines a header may ask for."""

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BodyTooLarge, InvalidParameter, UnusableImage
from app.http.admission import Admission
from app.http.guard import Guard, deadline, request_id
from app.http.keys import ApiKeys
from app.lifecycle import Lifecycle
from app.settings import Settings
from app.telemetry.request_state import RequestState
from app.telemetry.stages import Stages

SETTINGS = Settings(max_upload_bytes=100, metrics_port=9000)


@dataclass
class Guarded:
    """A guard before an application that reads the whole body."""

    settings: Settings = SETTINGS
    keys: tuple[str, ...] = ()
    full: bool = False
    fails: BaseException | None = None
    starts: bool = False  # its answer before it fails
    reads: bool = True
    scope: dict[str, Any] = field(default_factory=dict)  # that reached the application
    received: list[int] = field(default_factory=list)  # at each time, how many messages of the answer had been sent

    def __post_init__(self) -> None:
        admission = Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle())
        admission.images = int(self.full)
        self.guard = Guard(
            self.app,
            settings=self.settings,
            keys=ApiKeys(dict.fromkeys(self.keys, "unnamed"), metrics_port=9000),
            admission=admission,
        )

    async def app(self, scope, receive, send):
        self.scope = scope
        while self.reads and (await receive())["more_body"]:
            pass
        if self.starts:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        if self.fails:
            raise self.fails
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    def ask(self, path="/classify", method="POST", *, body: bytes = b"", port=8000, **headers: str):
        """Status, header fields and body of the answer."""
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": method, "path": path, "headers": raw, "server": ("127.0.0.1", port)}
        state = RequestState.of(scope)
        state.stages = Stages(observe=lambda *_: None)
        sent = []

        async def receive():
            self.received.append(len(sent))
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        asyncio.run(self.guard(scope, receive, send))
        start, *parts = sent
        fields = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], fields, b"".join(part.get("body", b"") for part in parts)


TOO_LARGE = {"content_length": "101"}
ENCODED = {"content_encoding": "gzip", **TOO_LARGE}
LATE = {"x_request_timeout": "never", **ENCODED}
FULL = {"full": True}
CLOSED = {"keys": ("k",), **FULL}


@pytest.mark.parametrize(  # each request has its own fault and those of all rows below it: the answer is about its own
    ("port", "guarded", "headers", "status"),
    [
        (9000, CLOSED, LATE, 404),
        (8000, CLOSED, LATE, 401),
        (8000, FULL, LATE, 422),
        (8000, FULL, ENCODED, 503),
        (8000, {}, ENCODED, 415),
        (8000, {}, TOO_LARGE, 413),
    ],
)
def test_refusals_in_their_order_read_no_byte_and_end_the_connection(port, guarded, headers, status):
    app = Guarded(**guarded)
    found, fields, body = app.ask(port=port, x_request_id="mine", **headers)
    assert (found, app.scope) == (status, {})
    assert app.received == [2]  # its head and its body, before the rest of the request is dropped
    assert fields["connection"] == "close"
    assert fields["content-type"] == "application/problem+json"
    problem = json.loads(body)
    assert problem["status"] == status
    assert problem["instance"] == "urn:request:mine"


def test_maps_and_probes_need_no_room():
    assert [Guarded(full=True).ask(path, "GET")[0] for path in ("/attention/x", "/livez")] == [200, 200]


def test_the_connection_ends_where_the_body_has_not():
    assert "connection" not in Guarded(keys=("k",)).ask("/model", "GET")[1]
    assert Guarded(reads=False).ask("/elsewhere", body=b"x", content_length="1")[1]["connection"] == "close"
    status, fields, _ = Guarded().ask(body=bytes(101), transfer_encoding="chunked")
    assert (status, fields["connection"]) == (413, "close")


def test_only_errors_of_the_service_show_their_detail(caplog):
    assert json.loads(Guarded(fails=UnusableImage("It is torn.")).ask()[2])["detail"] == "It is torn."
    status, _, body = Guarded(fails=RuntimeError("secret")).ask()
    assert (status, b"secret" in body, "secret" in caplog.text) == (500, False, True)


@pytest.mark.parametrize("fails", [RuntimeError("x"), BodyTooLarge("x")])
def test_an_error_after_the_start_of_an_answer_is_raised(fails):
    with pytest.raises(type(fails)):
        Guarded(fails=fails, starts=True).ask()


@pytest.mark.parametrize(("fails", "kind"), [(asyncio.CancelledError(), "unavailable"), (MemoryError(), "overloaded")])
def test_a_cancelled_request_and_one_without_memory_get_503(fails, kind):
    status, fields, body = Guarded(fails=fails).ask()
    assert (status, fields["retry-after"] in {"1", "2", "3"}) == (503, True)
    assert json.loads(body)["type"] == f"urn:vit-serve:problem:{kind}"


@pytest.mark.parametrize(
    ("path", "port", "status"),
    [
        ("/vit/livez", 8000, 200),
        ("/vit/vit/livez", 8000, 401),
        ("/vit/model", 8000, 401),
        ("/vit/metrics", 8000, 404),
        ("/vit/metrics\n", 8000, 404),
        ("/metrics\n\n", 8000, 404),
        ("/vit/metrics", 9000, 200),
    ],
)
def test_keys_and_ports_go_by_the_path_below_the_prefix(path, port, status):
    guarded = Guarded(settings=Settings(root_path="/vit", metrics_port=9000), keys=("k",))
    assert guarded.ask(path, "GET", port=port)[0] == status


NAMES = ["a", "3f1c-77", "A_b.C-9", "x" * 64, "", "x" * 65, "a b", "a\nlevel=error", "é", "<script>", "a;b"]


@given(name=st.text(st.characters(max_codepoint=255)) | st.sampled_from(NAMES))
def test_a_plain_request_id_is_kept_and_any_other_is_replaced_by_a_new_one(request_of, name):
    found = {request_id(request_of(x_request_id=name)) for _ in range(2)}
    if re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII):
        assert found == {name}
    else:
        assert len(found) == 2
        assert all(re.fullmatch(r"[0-9a-f]{32}", id) for id in found)


@pytest.mark.parametrize(("asked", "seconds"), [("5", 5), ("0.25", 0.25), ("1e-3", 0.001), ("99", 30), ("inf", 30)])
def test_a_deadline_is_at_most_the_setting(request_of, monkeypatch, asked, seconds):
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    assert deadline(request_of(x_request_timeout=asked), max_s=30) == 1000 + seconds
    assert deadline(request_of(), max_s=30) == 1030


@pytest.mark.parametrize("asked", ["", "0", "-1", "nan", "-inf", "soon", "1,5", "5s", "\xb2"])
def test_a_deadline_that_is_not_a_positive_number_is_refused(request_of, asked):
    with pytest.raises(InvalidParameter):
        deadline(request_of(x_request_timeout=asked), max_s=30)
