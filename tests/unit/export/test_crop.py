"""export/crop.py: what is said of a crop, in the words of make, and that its advice can be followed."""

from dataclasses import replace

import pytest

from export.crop import about_crop
from export.messages import BY_MAKE, worded
from tests.support.toy import toy_checkpoint

CENTER = replace(toy_checkpoint().preprocessing, crop="center", remainder=(0, 0), size=(24, 40), resize_size=(28, 46))


def test_a_crop_that_cuts_off_much_is_told_with_the_settings_that_see_all(monkeypatch):
    monkeypatch.setenv(BY_MAKE, "yes")
    said = worded(about_crop(CENTER, 0.578))
    assert "58 %" in said
    assert 'OPTIONS="--set crop=none --set resize_mode=squash --set resize_size=24,40"' in said


@pytest.mark.parametrize(
    ("preprocessing", "seen"),
    [(CENTER, 0.96), (replace(CENTER, crop="none", resize_mode="squash", resize_size=(24, 40)), 0.9)],
)
def test_nothing_is_said_of_one_that_does_not(preprocessing, seen):
    assert about_crop(preprocessing, seen) == ""
