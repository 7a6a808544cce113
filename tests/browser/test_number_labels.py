"""Labels that are numbers, each the index of another label: the page asks for the one that it names."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from app.settings import DEMO_BUNDLE
from tests.benchmarks.server import running
from tests.browser.stage import address, link, served, settle


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    bundle = Path(copytree(DEMO_BUNDLE, tmp_path_factory.mktemp("numbers") / "bundle"))
    manifest = json.loads((bundle / "manifest.json").read_text())
    numbers = [str(index + 1) for index in range(len(manifest["labels"]))]
    (bundle / "manifest.json").write_text(json.dumps(manifest | {"labels": numbers}))
    with running(bundle) as server:
        yield server.url


def explained(page) -> str:
    settle(page)
    return served(page, address(page))["label"]


def test_the_label_that_is_chosen_is_explained(looking, visit):
    names = looking.locator(".labels .name").all_inner_texts()
    for place, name in enumerate(names):
        looking.locator(".labels button").nth(place).click()
        assert explained(looking) == name
        assert looking.locator(".labels [aria-pressed=true] .name").all_inner_texts() == [name]
        assert looking.locator("[name=label]").evaluate("(list) => list.selectedOptions[0].text") == name
    for name in names:
        looking.select_option("[name=label]", label=name)
        assert explained(looking) == name
    assert explained(visit(link(looking))) == names[-1]


def test_the_second_label_is_another(looking):
    for name in looking.locator(".labels .name").all_inner_texts()[1:]:
        looking.select_option("[name=against]", label=name)
        settle(looking)
        assert served(looking, address(looking))["against"] == name
