"""Files from the dialog, a drop, the clipboard and the samples; those that fail, and those that are forgotten."""

from base64 import b64encode
from pathlib import Path

import pytest

from tests.browser.stage import address, alike, ask_unlikely, asked, link, pick, settle, shown, turn, visible

FORGOTTEN = {"status": 404, "json": {"detail": "There are no maps with this id."}}
OTHER = {"x-model-digest": "f" * 64}
SAID = "The server answered with another model than before. Try again, or load this page again."


def bring(page, event: str, *, file: bytes = b"", address: str = "") -> None:
    """Drag, drop or paste a file or an address."""
    page.evaluate(
        """([name, file, address]) => {
            const data = new DataTransfer();
            const bytes = Uint8Array.from(atob(file), (c) => c.charCodeAt(0));
            if (file) data.items.add(new File([bytes], "a.jpg", { type: "image/jpeg" }));
            else data.setData("text/uri-list", address);
            const [Kind, field] = name === "paste" ? [ClipboardEvent, "clipboardData"] : [DragEvent, "dataTransfer"];
            document.body.dispatchEvent(new Kind(name, { [field]: data, bubbles: true, cancelable: true }));
        }""",
        [event, b64encode(file).decode(), address],
    )


def refusal(page) -> str:
    return page.locator(".queue .refused .status").inner_text().replace("\n", " ")


def test_every_sample_is_there_and_a_picked_file_gets_labels_and_a_map(page, star):
    assert all(map(visible, page.locator("[data-sample] img").all()))
    pick(page, {"mine.jpg": star})
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"
    assert page.locator(".labels li").count() == 5
    assert page.locator(".queue .chosen").inner_text().splitlines()[::2] == ["star", "mine.jpg"]
    assert page.evaluate("[map.width, map.height]") == [320, 240]


def test_many_files_that_cannot_be_used_are_one_card_that_unfolds(page, star, complaints):
    pick(page, {f"{i:02}.jpg": star if i % 5 else b"hello %d" % i for i in range(25)})
    page.locator(".queue .named").nth(19).wait_for(state="attached")
    turn(page, "Answer")
    card = page.locator("#refusals")
    card.get_by_text("5 files cannot be used").wait_for()
    shown = page.locator(".queue li:visible")
    names = [button.get_attribute("title") for button in shown.locator("> button").all()]
    assert names == [f"{i:02}.jpg" for i in range(25) if i % 5]  # Tab goes from left to right
    card.locator("summary").click()
    refused = card.locator(".refused .status").all_inner_texts()
    assert [text.split()[0] for text in refused] == [f"{i:02}.jpg" for i in range(0, 25, 5)]
    assert all("This is text, not JPEG" in text for text in refused)
    card.get_by_role("button", name="Remove").click()
    assert card.is_hidden()
    assert complaints == 5 * ["415 /classify"]
    complaints.clear()


def test_of_two_additions_the_newer_is_shown(page, star):
    """Both are sent before either is answered, and the older is answered first."""
    held = []
    page.route("**/classify", lambda route: held.append(route))
    for name in ("older.jpg", "newer.jpg"):
        with page.expect_request("**/classify"):
            pick(page, {name: star})
    for name, route in zip(("older.jpg", "newer.jpg"), held, strict=True):
        route.continue_()
        page.locator(".queue .named", has_text=name).wait_for()
    settle(page)
    assert "newer.jpg" in page.locator(".queue .chosen").inner_text()


@pytest.mark.parametrize("event", ["drop", "paste"])
def test_a_dropped_or_pasted_file(page, star, event):
    if event == "drop":
        bring(page, "dragenter", file=star)
        assert page.locator("#veil").is_visible()
    bring(page, event, file=star)
    settle(page)
    assert page.locator("#veil").is_hidden()
    assert page.locator(".labels .name").first.inner_text() == "star"


@pytest.mark.parametrize("event", ["drop", "paste"])
def test_an_address_is_answered_where_the_person_looks(page, event):
    bring(page, event, address="https://example.org/cat.jpg")
    toast = page.locator("#toast")
    assert "Save the image, then add its file." in toast.inner_text()


def test_a_text_and_a_file_that_is_too_large_are_refused_in_sentences_beside_them(page, star, tmp_path, complaints):
    pick(page, {"notes.txt": b"hello", "a.jpg": star})
    settle(page)
    assert refusal(page).startswith("notes.txt This is text, not JPEG")
    assert page.locator(".labels .name").first.inner_text() == "star"  # the other file is not delayed
    page.get_by_role("button", name="Remove").click()
    assert page.locator(".queue li").count() == 1
    large = tmp_path / "large.jpg"
    large.write_bytes(bytes(33 * 2**20))
    page.set_input_files("#file", large)
    page.locator(".refused").wait_for()
    assert refusal(page).startswith("large.jpg The request body exceeds 33554432 bytes")
    assert complaints == ["415 /classify", "413 /classify"]
    complaints.clear()


@pytest.mark.parametrize("trouble", ["offline", "cut"])
def test_a_file_that_does_not_reach_the_server_is_sent_again_by_itself(page, star, trouble):
    answer = {
        "offline": lambda route: route.abort(),
        "cut": lambda route: route.fulfill(body='{"results": ['),
    }[trouble]
    page.route("**/classify", answer, times=1)
    pick(page, {"a.jpg": star})
    settle(page)
    assert page.locator(".refused").count() == 0


def test_a_file_that_finds_the_server_full_is_sent_again_by_itself(page, star, complaints):
    full = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"detail": "The service is full."}}
    page.route("**/classify", lambda route: route.fulfill(**full), times=1)
    pick(page, {"a.jpg": star})
    settle(page)
    assert page.locator(".refused").count() == 0
    assert complaints == ["503 /classify"]
    complaints.clear()


def test_files_wait_for_a_model_that_is_asked_for_until_it_answers(page, star, complaints):
    def answer(route) -> None:
        if not complaints:
            starting = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"detail": "The service is starting."}}
            route.fulfill(**starting)
        elif not up:
            route.abort()
        else:
            route.continue_()

    up = False
    page.route("**/model", answer)
    page.reload()
    page.get_by_text("The service is starting. It is asked again in 1 s.").wait_for()
    page.get_by_text("The server cannot be reached").wait_for()
    pick(page, {"mine.jpg": star})
    assert "waiting" in page.locator(".queue li").inner_text()
    up = True
    settle(page)
    assert "mine.jpg" in page.locator(".queue .chosen").inner_text()
    assert page.locator("#served b").is_visible()
    assert complaints == ["503 /model"]
    complaints.clear()


@pytest.fixture
def forget(complaints):
    """Let the server know the image that a page shows no more, by the id that it has now: `forget(page)`."""

    def forget(page) -> str:
        id = address(page).split("/")[2].split("?")[0]
        page.route(f"**/attention/{id}**", lambda route: route.fulfill(**FORGOTTEN))
        return id

    yield forget
    assert complaints
    assert {complaint[:15] for complaint in complaints} == {"404 /attention/"}
    complaints.clear()


def labels(page) -> list[str]:
    return page.locator(".labels li").all_inner_texts()


def test_the_file_is_sent_again_and_all_that_the_page_shows_stays(looking, visit, forget):
    before, sent = labels(looking), []
    looking.on("request", lambda request: sent.append(request.url) if request.url.endswith("/classify") else None)
    turn(looking, "What if")
    looking.get_by_role("gridcell").nth(9).click()
    first = forget(looking)
    turn(looking, "Inside")
    for part in ("#wall button", ".receipt", ".lens"):  # all three ask for what is gone
        looking.locator(part).first.wait_for()
    assert len(sent) == 1
    turn(looking, "Answer")
    looking.keyboard.press("3")
    settle(looking)
    assert asked(looking)["method"] == "class_token"
    assert labels(looking) == before
    assert looking.locator("#expired").is_hidden()
    assert looking.locator(".queue .chosen").count() == 1
    second = forget(looking)
    with looking.expect_download() as started:
        looking.click("#take-json")
    assert started.value.failure() is None
    turn(looking, "What if")
    looking.get_by_role("button", name="Cover", exact=True).click()
    looking.locator("#outcome table").wait_for()
    assert len(sent) == 2
    assert not {first, second} & set(link(looking).replace("#id=", "").split("&"))
    assert alike(shown(visit(link(looking))), shown(looking))


@pytest.mark.parametrize("trouble", ["is gone", "shows something else"])
def test_a_file_that_is_gone_or_has_changed_is_asked_for(page, star, tmp_path, forget, trouble):
    file = tmp_path / "a.jpg"
    file.write_bytes(star)
    page.set_input_files("#file", file)
    settle(page)
    if trouble == "is gone":
        file.unlink()
    else:  # some browsers send what is there now
        heart = Path("app/page/samples/heart.jpg").read_bytes()
        page.route("**/classify", lambda route: route.continue_(post_data=heart))
    forget(page)
    ask_unlikely(page)
    page.get_by_role("heading", name="This link has expired").wait_for()
    assert page.locator("#map-pane").is_hidden()


def by_other_model(route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, **OTHER})


def test_its_labels_and_maps_are_not_shown_until_the_first_model_answers_again(page, star, complaints):
    page.route("**/classify", by_other_model)
    pick(page, {"a.jpg": star, "b.jpg": star})
    page.locator("summary", has_text="2 files did not reach the model").click()
    assert page.locator(".refused", has_text=SAID).count() == 2
    page.unroute("**/classify")
    page.get_by_role("button", name="Try again", exact=True).first.click()  # sends both
    settle(page)
    page.locator(".queue .named").nth(1).wait_for()
    assert page.locator(".refused").count() == 0
    page.route("**/classify", by_other_model)  # it knows no image of the first
    page.route(f"**{address(page).split('?')[0]}?**", lambda route: route.fulfill(status=404, json={}))
    ask_unlikely(page)
    page.locator("#trouble", has_text=SAID).wait_for()
    assert page.locator("#map-pane").is_hidden()
    page.unroute("**/classify")
    page.get_by_role("button", name="Try again", exact=True).click()
    settle(page)
    assert {complaint[:15] for complaint in complaints} == {"404 /attention/"}
    complaints.clear()
