"""Labels of one name: each has its index beside it, and the page asks for the one that is meant."""

from collections.abc import Iterator

import pytest

from tests.browser.stage import asked, served, settle, turn
from tests.support.server import running


@pytest.fixture
def url(bundle_with) -> Iterator[str]:
    with running(bundle_with(labels=["crane"] * 12)) as server:
        yield server.url


def test_they_are_told_apart_wherever_they_stand(looking):
    names = looking.locator(".labels .name").all_inner_texts()
    id = looking.locator(".queue .chosen").get_attribute("data-id")
    indices = [one["index"] for one in served(looking, f"/attention/{id}/report")["predictions"]]
    assert names == [f"crane ({index})" for index in indices]
    assert names[0] in looking.locator(".queue .chosen").inner_text()
    looking.locator(".labels button").nth(1).click()
    looking.fill("[name=against]", names[2])
    settle(looking)
    assert (asked(looking)["label"], asked(looking)["against"]) == (str(indices[1]), str(indices[2]))
    said = f"Red patches speak for “{names[1]}”, blue ones for “{names[2]}”."
    assert looking.locator("#saying").inner_text() == said
    turn(looking, "Inside")
    looking.locator(".receipt .logit th", has_text=f"“{names[1]}” − “{names[2]}”").wait_for()
    looking.locator(".lens").wait_for()
    assert sorted(looking.locator(".lens tbody th").all_inner_texts()) == sorted(names)
    assert looking.locator("#heads b", has_text=f"“{names[1]}”").count() == 1
    turn(looking, "What if")
    looking.get_by_role("button", name="Top 10 %", exact=True).click()
    looking.locator("#outcome table").wait_for()
    followed = looking.locator("#outcome .followed span").all_inner_texts()
    assert followed == [names[1]] * 2
    assert f"the lead of “{names[1]}” over “{names[2]}”" in looking.locator("#cover-status").inner_text()
