"""Every error has one shape (RFC 9457), whatever part found it, and the service works afterwards."""

import base64
import json
import struct
import zlib

import pytest
from PIL import Image

from app.errors import ServiceError
from app.images.intake import Intake
from tests.support.problems import check_problem


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and has nearly no data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def body_of(content_type: str) -> dict:
    return {"content": b"hello", "headers": {"content-type": content_type}}


REQUESTS = {
    "nothing at all": ("POST", "/classify", {"content": b""}, 422),
    "text that calls itself a PNG": ("POST", "/classify", body_of("image/png"), 415),
    "json": ("POST", "/classify", {"json": {"image": "aGVsbG8="}}, 415),
    "an image of 60 million pixels": ("POST", "/classify", {"content": png_header(8_000, 7_500)}, 422),
    "top_k of zero": ("POST", "/classify?top_k=0", {"content": b""}, 422),
    "a form without a file": ("POST", "/classify", body_of("multipart/form-data; boundary=b"), 400),
    "another method": ("GET", "/classify", {}, 405),
    "a trailing slash": ("GET", "/model/", {}, 404),
    "a picture that the model lacks": ("GET", "/model/inspect/nothing", {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_every_error_has_one_shape(client, star, name):
    method, url, request, status = REQUESTS[name]
    response = client.request(method, url, **request)
    assert response.status_code == status
    check_problem(response)
    assert client.post("/classify?attention=false", content=star).status_code == 200


@pytest.mark.parametrize("path", ["/classify", "/predict"])
def test_a_file_that_curls_d_has_changed_gets_advice_and_other_files_do_not(client, star, path):
    stripped, sent = star.translate(None, b"\0\r\n"), {"content-type": "application/x-www-form-urlencoded"}
    assert "--data-binary" in client.post(path, content=stripped, headers=sent).json()["detail"]
    assert "--data-binary" not in client.post(path, content=star[:2000], headers=sent).json()["detail"]
    assert "--data-binary" not in client.post(path, content=stripped).json()["detail"]
    assert client.post(path, content=star, headers=sent).status_code == 200


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


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("path", ["/classify", "/embed", "/predict", "/v2/models/shapes/infer"])
def test_a_client_may_disconnect_in_every_protocol(client, star, hang_up, path, whole):
    tensor = {"name": "images", "shape": [1], "datatype": "BYTES", "parameters": {"content_type": "base64"}}
    head = {"inputs": [{**tensor, "data": [base64.b64encode(star).decode()]}]}
    body = json.dumps(head).encode() if path.endswith("/infer") else star
    assert hang_up(client.app, path, body, whole=whole) == 499
    assert client.app.state.services.admission.images == 0


def test_every_error_has_a_kind_of_its_own_and_an_error_status():
    kinds = ServiceError.__subclasses__()
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert all(400 <= kind.status <= 503 for kind in kinds)


def test_the_largest_allowed_image_passes(serve, encode):
    with serve(max_image_pixels=10_000) as client:
        assert client.post("/classify", content=encode(Image.new("RGB", (100, 100)))).status_code == 200
        assert client.post("/classify", content=encode(Image.new("RGB", (101, 100)))).status_code == 422
