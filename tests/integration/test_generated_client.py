"""A client that a generator makes of the OpenAPI description, as it is: no warning, and every answer is parsed."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import KEY
from tests.support.processes import PATIENCE_S

PACKAGE = "generated_vit_client"


@pytest.fixture(scope="module")
def generated(guarded_url, tmp_path_factory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(httpx.get(f"{guarded_url}/openapi.json", timeout=PATIENCE_S).content)
    program = Path(sys.executable).with_name("openapi-python-client")
    command = [program, "generate", "--path", "openapi.json", "--output-path", PACKAGE, "--meta", "none"]
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"  # for ruff, which formats what is made
    done = subprocess.run(
        [*command, "--fail-on-warning"], cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield lambda module: importlib.import_module(f"{PACKAGE}.{module}")


@pytest.fixture(scope="module")
def client(guarded_url, generated) -> Iterator[Any]:
    with generated("client").AuthenticatedClient(base_url=guarded_url, token=KEY) as client:
        yield client


def test_images_as_body_and_in_a_form_and_numbers_of_maps(generated, client, star):
    classify, file = generated("api.images.classify"), generated("types").File
    images = [file(payload=BytesIO(star), file_name=name) for name in "ab"]
    form = generated("models").ClassifyFilesImageForm(image=images)
    assert len(classify.sync(client=client, body=form).results) == 2
    (result,) = classify.sync(client=client, body=file(payload=BytesIO(star)), top_k=2).results
    assert result.predictions[0].label == "star"
    report = generated("api.maps.report").sync(client=client, id=result.id)
    assert report.label == "star"
    verified = generated("api.maps.verify").sync(client=client, id=result.id, steps=4, random_orders=1)
    assert verified.deletion.area >= 0
    covered = generated("api.maps.cover").sync(client=client, id=result.id, share=0.1, random_sets=1)
    assert len(covered.patches) == 6
    drawn = generated("api.maps.attention").sync_detailed(client=client, id=result.id)
    assert drawn.content.startswith(b"\x89PNG")
    assert generated("api.model.model").sync(client=client).name == "shapes"


def test_errors_are_parsed(guarded_url, generated, client):
    classify, file = generated("api.images.classify"), generated("types").File
    refused = classify.sync_detailed(client=client, body=file(payload=BytesIO(b"no image")))
    assert (refused.status_code, refused.parsed.status) == (415, 415)
    assert refused.parsed.detail.startswith("This is text, not JPEG")
    with generated("client").Client(base_url=guarded_url) as stranger:
        assert generated("api.model.model").sync_detailed(client=stranger).parsed.status == 401
