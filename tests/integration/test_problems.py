"""Every error has one shape (RFC 9457), whatever part found it, and the service works afterwards."""

import base64
import json

import pytest
from PIL import Image

from app.errors import ServiceError
from app.images.intake import Intake
from tests.integration.conftest import check_problem


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("POST", f"/classify?{query}", 422) for query in ("top_k=0", "threshold=-0.1", "threshold=nan")),
        ("GET", "/classify", 405),
        ("GET", "/model/", 404),
    ],
)
def test_errors_of_the_framework_have_the_shape_of_all_others(client, method, path, status):
    response = client.request(method, path)
    assert response.status_code == status
    assert response.headers.get("allow") == ("POST" if status == 405 else None)
    check_problem(response)


@pytest.mark.parametrize("path", ["/classify", "/predict"])
def test_a_file_that_curls_d_has_changed_gets_advice_and_other_files_do_not(client, star, path):
    stripped, sent = star.translate(None, b"\0\r\n"), {"content-type": "application/x-www-form-urlencoded"}
    assert "--data-binary" in client.post(path, content=stripped, headers=sent).json()["detail"]
    assert "--data-binary" not in client.post(path, content=star[:2000], headers=sent).json()["detail"]
    assert "--data-binary" not in client.post(path, content=stripped).json()["detail"]
    assert client.post(path, content=star, headers=sent).status_code == 200


def test_an_image_that_fails_unexpectedly_fails_alone(client, star, monkeypatch):
    prepare, sent = Intake.prepare, []

    async def fail_once(intake, upload, **options):
        sent.append(upload)
        if len(sent) == 2:
            raise RuntimeError("/etc/passwd")
        return await prepare(intake, upload, **options)

    monkeypatch.setattr(Intake, "prepare", fail_once)
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
    assert hang_up(client.app, path, body, whole=whole) == 499
    assert client.app.state.services.admission.images == 0


def test_every_error_has_a_kind_of_its_own_and_an_error_status():
    kinds = ServiceError.__subclasses__()
    assert len({kind.kind for kind in kinds}) == len(kinds)
    assert all(400 <= kind.status <= 503 for kind in kinds)


def test_the_largest_allowed_image_passes(serve, encode):
    images = [encode(Image.new("RGB", (width, 100))) for width in (100, 101)]
    with serve(max_image_pixels=10_000) as client:
        assert [client.post("/classify", content=image).status_code for image in images] == [200, 422]
