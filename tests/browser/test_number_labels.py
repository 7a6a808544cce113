"""Labels that are numbers, each the index of another label: the page asks for the one that it names."""

from collections.abc import Iterator

import pytest

from tests.browser.stage import address, link, served, settle
from tests.support.server import running


@pytest.fixture
def url(bundle_with) -> Iterator[str]:
    with running(bundle_with(labels=[str(index + 1) for index in range(12)])) as server:
        yield server.url


def explained(page) -> str:
    settle(page)
    return served(page, address(page))["label"]


def test_the_label_that_is_chosen_is_explained_and_the_second_is_another(looking, visit):
    names = looking.locator(".labels .name").all_inner_texts()
    for place, name in enumerate(names):
        looking.locator(".labels button").nth(place).click()
        assert explained(looking) == name
        assert looking.locator(".labels [aria-pressed=true] .name").all_inner_texts() == [name]
        assert looking.input_value("[name=label]") == name
    for name in names:
        looking.fill("[name=label]", name)
        assert explained(looking) == name
    assert explained(visit(link(looking))) == names[-1]
    looking.fill("[name=label]", names[0])
    for name in names[1:]:
        looking.fill("[name=against]", name)
        settle(looking)
        assert served(looking, address(looking))["against"] == name
