"""What the real server writes and sends about its requests: JSON lines, and spans over OTLP."""

import json
import sys

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.listener import keeping_posts
from tests.support.processes import PATIENCE_S
from tests.support.server import running

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_every_request_has_a_line_of_json_and_spans_where_the_environment_says_where_to(star, in_onnx_runtime):
    with keeping_posts(answers=True) as (port, received):
        otlp = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "NO_PROXY": "127.0.0.1"}
        with running(log_level="info", log_format="json", root_path="/vit", **otlp) as server:
            with httpx.Client(base_url=f"{server.url}/vit", timeout=PATIENCE_S) as client:
                traced = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
                id = client.post("/classify", content=star, headers=traced).json()["results"][0]["id"]
                client.get(f"/attention/{id}?format=json")
                client.get("/attention/forged%0a%7b%22level%22:%22info%22%7d")
                client.post("/classify", content=b"\xff\xd8\xff broken")
                client.get("/livez")  # has neither
            server.terminate()
            assert server.wait(60) == 0
            lines = [json.loads(line) for line in server.output().splitlines()]
    assert {line["logger"] for line in lines} >= {"app.main", "app.access", "uvicorn.error"}
    asked = [line for line in lines if line["logger"] == "app.access"]
    assert [(line["method"], line["route"], line["status"], line.get("problem")) for line in asked] == [
        ("POST", "/classify", 200, None),
        ("GET", "/attention/{id}", 200, None),
        ("GET", "/attention/{id}", 404, "unknown-attention"),
        ("POST", "/classify", 422, "unusable-image"),
    ]
    assert asked[0]["duration_ms"] > 0
    (image,) = asked[0]["images"]
    assert (image["format"], image["width"], image["height"], image["bytes"]) == ("JPEG", 320, 240, len(star))
    assert id not in json.dumps(asked)
    assert {path for path, _ in received} == {"/v1/traces"}
    bodies = (ExportTraceServiceRequest.FromString(body) for _, body in received)
    every = [span for body in bodies for of in body.resource_spans for scope in of.scope_spans for span in scope.spans]
    stages = {"receive", "decode", "queue", "inference", "store"}
    assert {span.name for span in every} == {"POST /classify", "GET /attention/{id}", "render", *stages}
    spans = {span.name: span for span in every if span.trace_id.hex() == TRACE}
    request = spans.pop("POST /classify")
    assert request.parent_span_id.hex() == SPAN
    assert (asked[0]["trace_id"], asked[0]["span_id"]) == (TRACE, request.span_id.hex())
    assert spans.keys() == stages
    for stage in spans.values():
        assert stage.parent_span_id == request.span_id
        assert request.start_time_unix_nano <= stage.start_time_unix_nano
        assert stage.start_time_unix_nano <= stage.end_time_unix_nano <= request.end_time_unix_nano + 10_000_000


def test_without_the_sdk_the_log_names_the_group_that_has_it(serve, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with serve() as client:
        assert client.get("/readyz").status_code == 200
    assert "no traces are sent: OTEL_EXPORTER_OTLP_ENDPOINT needs the extra otel" in caplog.text
