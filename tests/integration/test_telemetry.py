"""What the real server writes and sends about its requests: JSON lines, and spans over OTLP."""

import json
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks.server import Process, running
from tests.support.listener import keeping_posts

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
JSON = {"log_level": "info", "log_format": "json"}
TRACEPARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


def logged(server: Process) -> list[dict[str, Any]]:
    """Its whole log, once it has stopped."""
    server.terminate()
    assert server.wait(60) == 0
    return [json.loads(line) for line in server.output().splitlines()]


def test_every_line_is_json_and_every_request_has_one(star):
    with running(**JSON) as server, httpx.Client(base_url=server.url) as client:
        id = client.post("/classify", content=star, headers=TRACEPARENT).json()["results"][0]["id"]
        client.get(f"/attention/{id}?format=json")
        client.get("/attention/forged%0a%7b%22level%22:%22info%22%7d")
        client.post("/classify", content=b"\xff\xd8\xff broken")
        lines = logged(server)
    assert {line["logger"] for line in lines} >= {"app.main", "app.access", "uvicorn.error"}
    asked = [line for line in lines if line["logger"] == "app.access"]
    assert [(line["method"], line["route"], line["status"], line.get("problem")) for line in asked] == [
        ("POST", "/classify", 200, None),
        ("GET", "/attention/{id}", 200, None),
        ("GET", "/attention/{id}", 404, "unknown-attention"),
        ("POST", "/classify", 422, "unusable-image"),
    ]
    assert asked[0]["trace_id"] == TRACE
    assert asked[0]["duration_ms"] > 0
    (image,) = asked[0]["images"]
    assert (image["format"], image["width"], image["height"], image["bytes"]) == ("JPEG", 320, 240, len(star))
    assert id not in json.dumps(asked)


def test_spans_are_exported_where_the_environment_says_where_to(star):
    with keeping_posts(answers=True) as (port, received):
        otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "NO_PROXY": "127.0.0.1"}
        with running(**JSON, root_path="/vit", **otlp) as server:
            httpx.post(f"{server.url}/vit/classify", content=star, headers=TRACEPARENT)
            httpx.get(f"{server.url}/vit/livez")  # has no span
            lines = logged(server)
    spans = {}
    for path, body in received:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            spans |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
    request = spans.pop("POST /classify")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, SPAN)
    assert set(spans) == {"receive", "decode", "queue", "inference", "store"}
    for stage in spans.values():
        assert stage.parent_span_id == request.span_id
        assert request.start_time_unix_nano <= stage.start_time_unix_nano
        assert stage.start_time_unix_nano <= stage.end_time_unix_nano <= request.end_time_unix_nano + 10_000_000
    (line,) = [line for line in lines if line.get("route") == "/classify"]
    assert (line["trace_id"], line["span_id"]) == (TRACE, request.span_id.hex())
