"""export/judge/table.py: standard errors of paired differences, and what they allow to say."""

from pathlib import Path

import numpy as np
import pytest

from app.maps.judgement import JudgedMap
from export.judge.images import WAYS, JudgedImage
from export.judge.table import begin, behind, sentence, table
from tests.support.records import make_prepared

EASY = np.array([0.0, 10, 20, 30])  # images differ much more than maps do
LESS = np.array([0.1, 0.2, 0.1, 0.2])


def test_errors_are_of_the_differences_of_each_image():
    best, worse = behind(np.stack([EASY, EASY - LESS], axis=1))
    assert (best.mean, best.error) == (0, 0)
    assert worse.mean == pytest.approx(0.15)
    assert worse.error == pytest.approx(LESS.std(ddof=1) / 2)


def image(faithfulness: dict[str, float], on_object: list[int] | None = None) -> JudgedImage:
    """Of six patches: the hottest of every map is the first, but of the last map it is the last."""
    maps = {title: np.arange(6, 0, -1, dtype=np.float32).reshape(2, 3) for title in WAYS}
    maps["random"] = -maps["random"]
    areas = [[[0.2, 0.2 + faithfulness.get(title, 0.0)], [0.1, 0.1]] for title in WAYS]
    covered = None if on_object is None else np.isin(np.arange(6), on_object)
    return JudgedImage(
        file=Path("a.png"),
        label="a",
        score=0.5,
        image=make_prepared(),
        maps=maps,
        areas=np.array(areas),
        on_object=covered,
    )


def test_rows_are_in_the_order_of_faithfulness_and_say_how_it_was_found():
    rows = table([image({"evidence": 0.4, "rollout": 0.3}), image({"evidence": 0.6, "rollout": 0.1})])
    assert [row.title for row in rows[:2]] == ["evidence", "rollout"]
    assert (rows[0].method, rows[0].layer, rows[0].passes) == ("evidence", None, 0)
    assert (rows[0].faithfulness, rows[0].behind, rows[0].error) == (pytest.approx(0.5), 0, 0)
    assert rows[0].deletion == {"mean": pytest.approx(0.2), "blur": pytest.approx(0.1)}
    assert rows[0].insertion == {"mean": pytest.approx(0.7), "blur": pytest.approx(0.1)}
    assert (rows[1].behind, rows[1].error) == (pytest.approx(0.3), pytest.approx(0.2))
    assert rows[0].on_object is None


def test_the_hottest_patches_are_counted_where_the_object_is_known():
    rows = {row.title: row.on_object for row in table([image({}), image({}, [0, 1]), image({}, [5])])}
    found, by_chance = rows["evidence"], rows["random"]
    assert (found.images, found.hottest, found.five_hottest, found.found) == (2, 0.5, pytest.approx(0.2), 0.5)
    assert (by_chance.hottest, by_chance.five_hottest, by_chance.found) == (0.5, pytest.approx(0.2), 1)


def row(title: str, behind: float, error: float = 0.1, passes: int = 0) -> JudgedMap:
    method, areas = title.replace(" ", "_"), {"mean": 0.5, "blur": 0.5}
    return JudgedMap(
        title=title, method=method, passes=passes, deletion=areas, insertion=areas,
        faithfulness=1 - behind, behind=behind, error=error,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("maps", "said", "begins"),
    [
        ([row("evidence", 0, 0), row("rollout", 0.3), row("random", 1)], "evidence was the most faithful.", "evidence"),
        (
            [row("measured", 0, 0, 64), row("rollout", 0.1), row("evidence", 0.2), row("random", 1)],
            "measured was the most faithful, and rollout and evidence about as much.",
            "rollout",
        ),
        ([row("evidence", 0, 0), row("random", 0.1)], "no map was surely better than a random one.", None),
    ],
)
def test_what_the_differences_allow_to_say(maps, said, begins):
    assert sentence(maps, 40) == f"On 40 of your images {said}"
    assert (begin(maps) or row("none", 0)).method == (begins or "none")
