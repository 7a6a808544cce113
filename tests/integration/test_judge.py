"""`python -m export judge`, from images to what the service and its page say."""

import json

import pytest
from PIL import Image

from app.bundle import load_bundle
from app.maps.judgement import FILE, Judgement
from export.command import main
from model.shapes import held_out
from tests.support.edited import copied, edit

IMAGES = 3


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A bundle after the command, and the digest that it had before."""
    folder = tmp_path_factory.mktemp("judged")
    bundle = copied(folder / "shapes")
    before = load_bundle(bundle).digest
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for number, sample in enumerate(held_out(IMAGES + 2)):
        Image.fromarray(sample.pixels).save(folder / "images" / f"{number}.png")
        Image.fromarray(sample.mask).save(folder / "masks" / f"{number}.png")
    arguments = ["--images", str(folder / "images"), "--masks", str(folder / "masks"), "--limit", str(IMAGES)]
    main(["judge", str(bundle), *arguments])
    return bundle, before


def test_the_table_is_of_this_model_whose_digest_stays(judged):
    bundle, before = judged
    table = Judgement.model_validate_json((bundle / FILE).read_bytes())
    assert table.digest == before == load_bundle(bundle).digest
    assert table.images == IMAGES
    assert table.says.startswith(f"On {IMAGES} of your images ")
    rows = {row.title: row for row in table.maps}
    assert rows["positive evidence"].faithfulness > rows["random"].faithfulness
    assert all(row.on_object.images == IMAGES for row in table.maps)


def test_the_page_beside_it_has_the_table_and_every_map_of_every_image(judged):
    bundle, _ = judged
    page = bundle.with_name("shapes.judged.html").read_text(encoding="utf-8")
    table = json.loads((bundle / FILE).read_text())
    assert table["says"] in page
    assert page.count("data:image/png") == IMAGES * (len(table["maps"]) - 1)  # none of a random map
    assert page.count("data:image/jpeg") == IMAGES
    assert "https://" not in page


def test_the_service_has_the_table_and_leaves_out_one_of_another_model(judged, serve, caplog):
    bundle, _ = judged
    with serve(bundle=bundle) as client:
        assert client.get("/model").json()["judged"] == json.loads((bundle / FILE).read_text())
    edit(bundle, name="another")
    with serve(bundle=bundle) as client:
        assert client.get("/model").json()["judged"] is None
    assert "is of another model" in caplog.text


@pytest.mark.parametrize(
    ("images", "refusal"),
    [("none", "--images {}: this does not exist"), ("", "--images {}: 0 images can be used, and 2 are needed")],
)
def test_what_cannot_be_judged_is_refused(tmp_path, images, refusal):
    bundle, place = copied(tmp_path / "shapes"), tmp_path / "empty" / images
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as stopped:
        main(["judge", str(bundle), "--images", str(place)])
    assert str(stopped.value) == f"not judged: {refusal.format(place)}"
    assert not (bundle / FILE).exists()
