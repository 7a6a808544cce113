"""Every error has one shape (RFC 9457), whatever part found it, and the service works afterwards."""

import base64
import gc
import json
import weakref

import pytest

from app.api import image_request
from app.http.paths import PROBES
from app.images.preprocessor import Preprocessor
from app.images.upload import Upload
from tests.integration.conftest import check_problem
from tests.support.processes import eventually


@pytest.mark.parametrize(
    ("call", "status", "allowed"),
    [
        ("POST /classify?threshold=nan", 422, None),
        ("POST /classify?top_k=1&top_k=1", 422, None),
        ("POST /classify?top_k=", 422, None),
        ("GET /models", 404, None),
        ("GET /classify", 405, "POST"),
        ("OPTIONS /", 405, "GET, HEAD, POST"),
        ("DELETE /docs", 405, "GET, HEAD"),
        ("POST /static-offline-docs/swagger-ui.css", 405, "GET, HEAD"),
    ],
)
def test_errors_of_the_framework_have_the_shape_of_all_others_and_name_every_method(client, call, status, allowed):
    response = client.request(*call.split())
    assert (response.status_code, response.headers.get("allow")) == (status, allowed)
    check_problem(response)


@pytest.mark.parametrize("call", ["POST /classify/", "POST //classify", "GET /docs/"])
def test_a_path_with_a_slash_too_many_is_not_redirected(client, call):
    """A client would send its image twice, or GET what it wanted to POST."""
    method, path = call.split()
    address = f"http://testserver{path}"  # not a path alone, which may not begin with //
    assert client.request(method, address, follow_redirects=False).status_code == 404


def test_a_parameter_that_a_path_does_not_take_is_refused_by_name(client, star):
    paths = client.get("/openapi.json").json()["paths"]
    assert len(paths) > 20
    for path, methods in paths.items():
        for method, call in methods.items():
            known = [parameter["name"] for parameter in call.get("parameters", ()) if parameter["in"] == "query"]
            answer = client.request(method, path.format(id="x", name="shapes", version="1") + "?zzz=1", content=star)
            if path in PROBES:
                assert answer.status_code == 200
                continue
            assert (answer.status_code, answer.json()["type"]) == (422, "urn:vit-serve:problem:invalid-parameter")
            assert [error["parameter"] for error in answer.json()["errors"]] == ["zzz"]
            assert answer.json()["detail"].endswith(f"which takes {', '.join(known) or 'none'}.")


def test_a_list_with_a_wrong_item_is_refused_once_by_the_name_of_its_parameter(client):
    errors = client.post("/classify?labels=,").json()["errors"]
    assert [error["parameter"] for error in errors] == ["labels"]


def test_the_page_and_probes_answer_the_same_whatever_the_query(client):
    for path in ("/?id=3", "/page/style.css?v=2", "/docs?x", "/openapi.json?v=1", "/health?verbose"):
        assert client.get(path).content == client.get(path.partition("?")[0]).content, path


@pytest.mark.parametrize("path", ["verify", "cover?patches=1"])
def test_a_post_that_takes_its_parameters_from_the_query_refuses_a_body(client, path):
    for content, status in ((b"fill=blur", 400), (b'{"steps": 8}', 400), (b" {}", 404), (b"", 404)):
        assert client.post(f"/attention/{'0' * 32}/{path}", content=content).status_code == status, content


def test_an_image_that_fails_unexpectedly_fails_alone(client, star, monkeypatch):
    prepare, sent = Preprocessor.prepare, []

    async def fail_once(preprocessor, upload, **options):
        sent.append(upload)
        if len(sent) == 2:
            raise RuntimeError("/etc/passwd")
        return await prepare(preprocessor, upload, **options)

    monkeypatch.setattr(Preprocessor, "prepare", fail_once)
    response = client.post("/classify", files=[("image", ("a", star))] * 3)
    first, failed, last = response.json()["results"]
    assert first["predictions"] == last["predictions"]
    assert failed["error"]["type"] == "urn:vit-serve:problem:internal-server-error"
    assert "passwd" not in response.text


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("path", ["/classify", "/embed", "/predict", "/v2/models/shapes/infer"])
def test_a_client_may_disconnect_in_every_protocol(client, star, hang_up, path, whole):
    tensor = {"name": "images", "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "base64"}}
    head = {"inputs": [{**tensor, "data": [base64.b64encode(star).decode()]}]}
    body = json.dumps(head).encode() if path.endswith("/infer") else star
    assert hang_up(client.app, path, body, whole=whole) == []
    assert client.app.state.services.admission.images == 0


@pytest.mark.parametrize("path", ["", "/wall", "/report"])
def test_maps_that_nobody_waits_for_are_not_made(client, star, hang_up, path):
    maps = client.post("/classify", content=star).json()["results"][0]["attention"]
    assert hang_up(client.app, maps + path, method="GET") == []
    assert client.app.state.services.admission.images == 0


@pytest.mark.parametrize(("image", "status"), [(b"hello", 415), (b"\x89PNG\r\n\x1a\n", 422), (None, 200)])
def test_an_upload_is_freed_when_it_is_answered(client, star, monkeypatch, image, status):
    """And not when Python's collector looks for cycles, which it hardly does for a few large bodies."""
    uploads: weakref.WeakSet[Upload] = weakref.WeakSet()

    class Seen(Upload):
        def __init__(self):
            super().__init__()
            uploads.add(self)

    monkeypatch.setattr(image_request, "Upload", Seen)
    gc.disable()
    try:
        assert client.post("/classify", content=image or star).status_code == status
        eventually(lambda: not uploads)
    finally:
        gc.enable()
