"""app/client/bulk.py: which images share a request, and where their heatmaps go."""

from pathlib import Path

import pytest

from app.client.bulk import BYTES, IMAGES, groups, map_file


def test_a_request_has_a_few_images(tmp_path):
    names = [str(tmp_path / f"{i}.png") for i in range(2 * IMAGES + 1)]
    for name in names:
        Path(name).write_bytes(b"x")
    assert list(map(len, groups(names))) == [IMAGES, IMAGES, 1]


def test_a_request_has_a_few_bytes(tmp_path):
    sizes = {"small": 10, "half": BYTES // 2, "rest": BYTES // 2 - 10, "more": 1, "large": 2 * BYTES, "last": 1}
    for name, size in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    found = [[Path(image).name for image in group] for group in groups([str(tmp_path / name) for name in sizes])]
    assert found == [["small", "half", "rest"], ["more"], ["large"], ["last"]]


def test_a_file_that_is_gone_stops_nothing(tmp_path):
    assert list(groups([str(tmp_path / "gone")])) == [[str(tmp_path / "gone")]]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("a.jpg", "maps/a.jpg.png"),
        ("x/a.jpg", "maps/x/a.jpg.png"),
        ("/x/a.jpg", "maps/x/a.jpg.png"),
        ("../a.jpg", "maps/_/a.jpg.png"),
        ("x/../../a.jpg", "maps/x/_/_/a.jpg.png"),
        ("....//a.jpg", "maps/..../a.jpg.png"),
    ],
)
def test_heatmaps_stay_in_their_folder(image, expected):
    assert map_file(Path("maps"), image) == Path(expected)
