"""Every input of the catalogue, once, through the whole app."""

import os
from contextlib import suppress

import pytest
from PIL import Image, JpegImagePlugin

from app.errors import UnsupportedType, UnusableImage
from app.images.decode import PARSERS, Limits, opened
from tests.catalogue.case import Case
from tests.catalogue.every import CASES
from tests.catalogue.foreign import cases as foreign
from tests.catalogue.jpegs import jpeg
from tests.catalogue.json_bodies import JsonBody, bodies
from tests.integration.conftest import check_problem
from tests.support.server import family


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_each_gets_the_answer_it_should(client, case: Case):
    response = client.post("/classify", content=case.make())
    assert response.status_code in case.statuses, response.text
    if response.status_code == 200:
        scores = [prediction["score"] for prediction in response.json()["results"][0]["predictions"]]
        assert all(0 <= score <= 1 for score in scores)
    else:
        check_problem(response)


@pytest.mark.parametrize("body", bodies(), ids=lambda body: body.name)
def test_json_without_an_image_is_refused(client, body: JsonBody):
    response = client.post(body.path, content=body.make(2**16), headers={"Content-Type": "application/json"})
    assert response.status_code == body.status, response.text
    check_problem(response)


def test_after_all_that_no_decoder_has_been_lost(client):
    before = set(family(os.getpid()))
    for name in ("JPEG, 20,000 scans", "PNG, 13377 x 13377 in 1 bit", "GIF, 10,000 frames", "TIFF, floats up to 1"):
        client.post("/classify?attention=false", content=CASES[name].make())
    assert set(family(os.getpid())) == before


@pytest.mark.parametrize("case", foreign(), ids=lambda case: case.name)
def test_no_other_parser_is_ever_reached(case: Case, monkeypatch):
    """Pillow knows forty types. Those that are not accepted are not asked, not even whether they know the bytes."""
    Image.init()
    asked = []
    spies = (lambda *_: asked.append("parser"), lambda *_: asked.append("knows the bytes") or True)
    monkeypatch.setattr(Image, "OPEN", dict.fromkeys(Image.OPEN, spies))
    spy = type("Spy", (JpegImagePlugin.JpegImageFile,), {"_open": lambda self: asked.append("accepted")})
    monkeypatch.setattr("app.images.decode.PARSERS", dict.fromkeys(PARSERS, spy))
    decode(case.make())
    assert asked == []


def test_an_accepted_image_reaches_its_own_parser_alone(monkeypatch):
    Image.init()
    asked = []
    monkeypatch.setattr(Image, "OPEN", dict.fromkeys(Image.OPEN, (lambda *_: asked.append("parser"), None)))
    decode(jpeg())
    decode(CASES["JPEG, two pictures (MPO)"].make())
    assert asked == []


def decode(data: bytes) -> None:
    limits = Limits(max_pixels=1_000_000, max_aspect_ratio=64)
    with suppress(UnsupportedType, UnusableImage), opened(data, limits) as (image, _):
        image.load()
