"""Every error has one shape (RFC 9457), whatever part found it, and the service works afterwards."""

import base64
import json
import struct
import zlib

import pytest
from PIL import Image

from app.api.body.images import MAX_FIELDS
from app.errors import ServiceError
from app.images.intake import Intake
from tests.support.problems import check_problem


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and has nearly no data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def form(body: bytes, boundary: str = "b") -> dict:
    return {"content": body, "headers": {"content-type": f"multipart/form-data; boundary={boundary}"}}


def body_of(content_type: str) -> dict:
    return {"content": b"hello", "headers": {"content-type": content_type}}


PART = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n'
FIELD = b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\nx\r\n'

REQUESTS = {
    "nothing at all": ("POST", "/classify", {"content": b""}, 422),
    "text": ("POST", "/classify", {"content": b"hello"}, 415),
    "text that calls itself a PNG": ("POST", "/classify", body_of("image/png"), 415),
    "json": ("POST", "/classify", {"json": {"image": "aGVsbG8="}}, 415),
    "json that is no base64": ("POST", "/classify", {"json": {"image": "abc"}}, 400),
    "json without an image": ("POST", "/classify", {"json": {}}, 400),
    "another kind of multipart": ("POST", "/classify", body_of("multipart/mixed"), 415),
    "an image of 400 million pixels": ("POST", "/classify", {"content": png_header(20_000, 20_000)}, 422),
    "an image of 60 million pixels": ("POST", "/classify", {"content": png_header(8_000, 7_500)}, 422),
    "a sliver": ("POST", "/classify", {"content": png_header(1, 60_000)}, 422),
    "a body over the limit": ("POST", "/classify", {"content": b"\xff\xd8\xff" + bytes(33 * 2**20)}, 413),
    "top_k of zero": ("POST", "/classify?top_k=0", {"content": b""}, 422),
    "top_k of no number": ("POST", "/classify?top_k=many", {"content": b""}, 422),
    "attention of no truth": ("POST", "/classify?attention=maybe", {"content": b""}, 422),
    "no boundary": ("POST", "/classify", {"content": PART, "headers": {"content-type": "multipart/form-data"}}, 400),
    "another boundary": ("POST", "/classify", form(PART + b"--b--\r\n", "c"), 400),
    "no end": ("POST", "/classify", form(PART[:-4]), 400),
    "no file": ("POST", "/classify", form(FIELD + b"--b--\r\n"), 400),
    "too many files": ("POST", "/classify", form(PART * 17 + b"--b--\r\n"), 400),
    "too many fields": ("POST", "/classify", form(FIELD * (MAX_FIELDS + 1) + b"--b--\r\n"), 400),
    "an empty file": ("POST", "/classify", {"files": [("a", ("a", b""))]}, 422),
    "another method": ("GET", "/classify", {}, 405),
    "another path": ("GET", "/nowhere", {}, 404),
    "a trailing slash": ("GET", "/model/", {}, 404),
    "a picture that the model lacks": ("GET", "/model/inspect/nothing", {}, 404),
    "an unknown id": ("GET", "/attention/AAAAAAAAAAAAAAAAAAAAAA", {}, 404),
    "an unknown id to verify": ("POST", "/attention/AAAAAAAAAAAAAAAAAAAAAA/verify", {}, 404),
    "an unknown id to report on": ("GET", "/attention/AAAAAAAAAAAAAAAAAAAAAA/report", {}, 404),
    "a layer that is not there": ("GET", "/attention/AAAAAAAAAAAAAAAAAAAAAA?layer=99", {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_one_shape(client, star, name):
    method, url, request, status = REQUESTS[name]
    response = client.request(method, url, **request)
    assert response.status_code == status
    check_problem(response)
    assert client.post("/classify?attention=false", content=star).status_code == 200


def test_a_wrong_method_says_which_is_right(client):
    assert client.get("/classify").headers["allow"] == "POST"


def test_an_image_that_fails_unexpectedly_fails_alone(client, star, monkeypatch):
    prepare, sent = Intake.prepare, []

    async def fail_once(intake, upload, **options):
        sent.append(upload)
        if len(sent) == 2:
            raise RuntimeError("/etc/passwd")
        return await prepare(intake, upload, **options)

    monkeypatch.setattr(Intake, "prepare", fail_once)
    response = client.post("/classify", files=[("image", ("a", star))] * 3)
    assert response.status_code == 200
    first, failed, last = response.json()["results"]
    assert first["predictions"] == last["predictions"]
    assert failed["error"]["type"] == "urn:vit-serve:problem:internal-server-error"
    assert "passwd" not in response.text


def test_a_failure_of_ours_is_a_500_that_tells_nothing(client, star, monkeypatch):
    def fail(*args):
        raise RuntimeError("secret of the engine")

    monkeypatch.setattr("app.inference.batcher.Batcher.run", fail)
    response = client.post("/classify", content=star)
    assert response.status_code == 500
    check_problem(response)
    assert "secret" not in response.text


def test_a_full_service_says_when_to_come_back(serve, star, monkeypatch):
    with serve(max_queue_images=2) as client:
        monkeypatch.setattr(client.app.state.services.admission, "images", 1)
        response = client.post("/classify", files=[("a", ("a", star)), ("b", ("b", star))])
        assert response.status_code == 503
        check_problem(response)
        assert 1 <= int(response.headers["retry-after"]) <= 3
        monkeypatch.undo()
        assert client.post("/classify", content=star).status_code == 200


def test_a_request_that_will_never_fit_is_not_asked_to_come_back(serve, star):
    with serve(max_queue_images=1) as client:
        response = client.post("/classify", files=[("a", ("a", star)), ("b", ("b", star))])
        assert response.status_code == 400
        check_problem(response)
        assert "at most 1" in response.json()["detail"]
        assert "retry-after" not in response.headers
        assert client.post("/classify", content=star).status_code == 200


def test_a_body_without_a_length_is_cut_at_the_limit(serve):
    seen = 0

    def endless():
        nonlocal seen
        while seen < 1000:
            seen += 1
            yield bytes(1000)

    with serve(max_upload_bytes=50_000) as client:
        response = client.post("/classify", content=endless())
        assert response.status_code == 413
        check_problem(response)
        assert response.headers["connection"] == "close"


def test_a_client_that_hangs_up_is_forgotten(client, star, hang_up):
    services = client.app.state.services
    assert hang_up(client.app, "/classify", star) == 499
    assert services.admission.images == 0  # every place is free again


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("path", ["/classify", "/embed", "/predict", "/v2/models/shapes/infer"])
def test_a_client_may_hang_up_at_every_door(client, star, hang_up, path, whole):
    tensor = {"name": "images", "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "base64"}}
    head = {"inputs": [{**tensor, "data": [base64.b64encode(star).decode()]}]}
    body = json.dumps(head).encode() if path.endswith("/infer") else star
    assert hang_up(client.app, path, body, whole=whole) == 499
    assert client.app.state.services.admission.images == 0


def test_errors_are_a_tree_with_a_status_each():
    kinds = ServiceError.__subclasses__()
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert all(400 <= kind.status <= 503 for kind in kinds)


def test_the_largest_allowed_image_passes(serve, encode):
    with serve(max_image_pixels=10_000) as client:
        assert client.post("/classify", content=encode(Image.new("RGB", (100, 100)))).status_code == 200
        assert client.post("/classify", content=encode(Image.new("RGB", (101, 100)))).status_code == 422
