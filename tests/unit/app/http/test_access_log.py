import asyncio
import logging
from unittest.mock import AsyncMock

import pytest
from opentelemetry import trace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.errors import Overloaded
from app.http.access_log import SECURITY, AccessLog
from app.http.admission import Admission
from app.http.guard import Guard
from app.http.keys import ApiKeys
from app.http.problems import respond_to
from app.lifecycle import Lifecycle
from app.settings import Settings
from app.telemetry.metrics import Metrics
from app.telemetry.request_state import RequestState

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


async def thing(request: Request) -> Response:
    state = RequestState.of(request.scope)
    state.stages.add("decode", 0.0, 0.25)
    state.images = [{"sha256": "abc"}]
    logging.getLogger("app.thing").info("inside")
    return Response(trace.format_trace_id(trace.get_current_span().get_span_context().trace_id))


async def refused(request: Request) -> Response:
    return respond_to(Overloaded("Later."), RequestState.of(request.scope))


OWN = {"cache-control": "private, max-age=9", "content-security-policy": "default-src 'self'"}


async def own(request: Request) -> Response:
    return Response(headers=OWN)


async def broken(request: Request) -> Response:
    raise ValueError


@pytest.fixture
def client(metrics) -> TestClient:
    paths = {"/things/{id}": thing, "/readyz": thing, "/refused": refused, "/broken": broken, "/own": own}
    routes = [Route(path, answer) for path, answer in paths.items()]
    guard = Guard(
        Starlette(routes=routes),
        settings=Settings(root_path="/vit"),
        keys=ApiKeys({"secret": "team"}, metrics_port=0),
        admission=Admission(max_images=1, max_wait_s=1, image_s=0, lifecycle=Lifecycle()),
    )
    app = AccessLog(guard, metrics=metrics, routes=routes, model="a digest")
    return TestClient(app, raise_server_exceptions=False, headers={"X-API-Key": "secret"})


@pytest.fixture(autouse=True)
def logged(caplog) -> None:
    caplog.set_level(logging.INFO)


def requests(metrics: Metrics, **labels: str) -> float | None:
    return metrics.registry.get_sample_value("vit_requests_total", {"method": "GET", **labels})


@pytest.mark.parametrize(
    ("paths", "route", "status"),
    [
        (("/things/1", "/things/2"), "/things/{id}", "200"),
        (("/nowhere/1", "/nowhere/2"), "unmatched", "404"),
        (("/broken", "/broken"), "/broken", "500"),
    ],
)
def test_a_request_is_counted_under_its_routes_template(client, metrics, paths, route, status):
    assert {str(client.get(path).status_code) for path in paths} == {status}
    assert metrics.registry.get_sample_value("vit_requests_in_flight") == 0
    assert requests(metrics, route=route, status=status) == 2
    assert metrics.registry.get_sample_value("vit_request_seconds_count", {"route": route}) == 2


def test_requests_without_a_key_are_counted_under_their_routes_and_others_by_the_name_of_their_key(client, metrics):
    for path in ("/things/1", "/vit/things/2", "/nowhere", "/vit/vit/things/3"):
        assert client.get(path, headers={"X-API-Key": "wrong"}).status_code == 401
    assert requests(metrics, route="/things/{id}", status="401") == 2
    assert requests(metrics, route="unmatched", status="401") == 2
    for path in ("/things/1", "/refused", "/readyz"):
        client.get(path)
    assert metrics.registry.get_sample_value("vit_key_requests_total", {"key": "team"}) == 2  # probes are not counted


def test_the_time_in_which_the_rest_of_a_request_is_dropped_does_not_count(client, metrics, monkeypatch):
    monkeypatch.setattr("app.http.body.LINGER_S", 0.5)

    async def receive():
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "POST", "path": "/things/1", "server": ("t", 80)}
    scope["headers"] = [(b"content-length", b"9")]
    asyncio.run(client.app(scope, receive, AsyncMock()))  # without a key
    found = {"route": "/things/{id}"}
    assert metrics.registry.get_sample_value("vit_request_seconds_count", found) == 1
    assert metrics.registry.get_sample_value("vit_request_seconds_sum", found) < 0.5


def test_every_answer_has_an_id_the_model_and_the_security_headers_that_its_route_has_not_set(client):
    security = {name.decode(): value.decode() for name, value in SECURITY.items()}
    for path, key, status, expected in (
        ("/readyz", "secret", 200, {}),
        ("/own", "", 401, {}),
        ("/own", "secret", 200, OWN),
    ):
        answer = client.get(path, headers={"X-Request-ID": "mine", "X-API-Key": key})
        assert answer.status_code == status
        both = {"x-request-id": "mine", "x-model-digest": "a digest", **security, **expected}
        assert both.items() <= answer.headers.items()


def test_a_problem_is_counted_and_logged_by_its_kind_and_has_no_stages(client, metrics, caplog):
    assert "server-timing" not in client.get("/refused").headers
    assert metrics.registry.get_sample_value("vit_problems_total", {"kind": "overloaded"}) == 1
    assert caplog.records[-1].fields["problem"] == "overloaded"


def test_each_request_has_one_log_line(client, caplog):
    client.get("/things/secret?key=secret")
    (line,) = [line for line in caplog.records if line.name == "app.access"]
    assert line.getMessage() == "GET /things/{id} 200"
    assert line.fields.pop("duration_ms") > 0
    images = [{"sha256": "abc"}]
    assert line.fields == {"method": "GET", "route": "/things/{id}", "status": 200, "key": "team", "images": images}


def test_probes_are_logged_at_debug_only(client, metrics, caplog):
    for level, expected in ((logging.INFO, 0), (logging.DEBUG, 1)):
        caplog.clear()
        caplog.set_level(level)
        client.get("/readyz")
        assert len([line for line in caplog.records if line.name == "app.access"]) == expected
    assert requests(metrics, route="/readyz", status="200") == 2


def test_the_trace_of_the_client_holds_for_its_request_only(client):
    assert client.get("/things/1", headers={"traceparent": f"00-{TRACE}-{SPAN}-01"}).text == TRACE
    assert client.get("/things/1").text == "0" * 32
