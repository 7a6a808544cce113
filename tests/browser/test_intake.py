"""Files from the dialog, a drop, the clipboard and the samples, and the messages for files that fail."""

from base64 import b64encode

import pytest

from tests.browser.stage import pick, served, settle, visible


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
    assert page.evaluate("[map.naturalWidth, map.naturalHeight]") == [320, 240]


def test_who_has_no_image_yet_reads_what_can_be_asked(page):
    labels = served(page, "/model")["manifest"]["labels"]
    assert page.inner_text("#known") == f"12 labels: {', '.join(labels)}"
    assert page.get_by_text("or try one of these").is_visible()


def test_many_files_stay_in_one_row_that_shows_the_chosen_one(visit, star):
    page = visit(viewport={"width": 390, "height": 844})
    pick(page, {f"{i}.jpg": star for i in range(24)})
    page.locator(".queue .named").nth(23).wait_for()
    settle(page)
    assert page.locator("#queue").bounding_box()["height"] < 100
    page.locator(".queue button").last.evaluate("(button) => button.click()")
    chosen = page.locator(".queue .chosen")
    assert "23.jpg" in chosen.inner_text()
    box = chosen.bounding_box()
    assert 0 <= box["x"] < box["x"] + box["width"] <= 390


def test_many_files_that_cannot_be_used_are_one_card_that_unfolds_and_the_chosen_image_stays_in_view(
    page, star, complaints
):
    pick(page, {f"{i:02}.jpg": star if i % 5 else b"hello %d" % i for i in range(25)})
    page.locator(".queue .named").nth(19).wait_for()
    card, box = page.locator("#refusals"), page.locator("#queue").bounding_box()
    card.get_by_text("5 files cannot be used").wait_for()
    assert card.bounding_box()["width"] < 250
    shown = page.locator(".queue li:visible")
    names = [button.get_attribute("title") for button in shown.locator("> button").all()]
    assert names == [f"{i:02}.jpg" for i in range(25) if i % 5]  # Tab goes from left to right
    lefts = [item.bounding_box()["x"] for item in shown.all()]
    assert lefts == sorted(lefts)
    shown.last.locator("button").evaluate("(button) => button.click()")
    for _ in ("folded", "unfolded"):
        page.wait_for_function(
            """() => {
                const box = (selector) => document.querySelector(selector).getBoundingClientRect();
                const [strip, card] = [box("#queue"), box(".queue .chosen")];
                return strip.left <= card.left && card.right <= strip.right;
            }"""
        )
        card.locator("summary").click()
    card.locator("summary").click()
    assert page.locator("#queue").bounding_box()["height"] == box["height"]
    refused = card.locator(".refused .status").all_inner_texts()
    assert [text.split()[0] for text in refused] == [f"{i:02}.jpg" for i in range(0, 25, 5)]
    assert all("This is text, not JPEG" in text for text in refused)
    for left in ("4 files cannot be used", "3 files cannot be used", "2 files cannot be used"):
        card.get_by_role("button", name="Remove").first.click()
        assert card.locator("summary").inner_text() == left
    card.get_by_role("button", name="Remove").first.click()
    assert card.locator("summary").is_hidden()  # one needs no count
    card.get_by_role("button", name="Remove").click()
    assert card.is_hidden()
    assert complaints == 5 * ["415 /classify"]
    complaints.clear()


def test_the_answer_names_its_file(page, star):
    long = f"{'holiday-' * 20}.jpg"
    pick(page, {"a.jpg": star, long: star})
    page.locator(".queue .named").nth(1).wait_for()
    name = page.locator(".labels .file")
    for file in (long, "a.jpg"):
        page.get_by_title(file, exact=True).and_(page.locator(".queue button")).click()
        settle(page)
        assert (name.inner_text(), name.get_attribute("title")) == (file, file)
        assert name.evaluate("(name) => name.scrollWidth > name.clientWidth") is (file == long)  # an ellipsis
        assert name.bounding_box()["height"] < 30
    page.reload()
    settle(page)
    page.locator(".labels button").first.wait_for()
    assert name.count() == 0  # a link knows none


def test_many_files_queue_up_and_the_first_is_shown(page, star):
    pick(page, {f"{i}.jpg": star for i in range(6)})
    page.locator(".queue .named").nth(5).wait_for()
    shown = page.locator(".queue .chosen").get_attribute("data-id")
    other = page.locator(".queue .named:not(.chosen)").last
    other.locator("button").click()
    settle(page)
    assert page.locator(".queue .chosen").get_attribute("data-id") not in {shown, ""}  # and one is chosen


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
def test_an_address_is_answered_with_a_sentence(page, event):
    page.set_viewport_size({"width": 390, "height": 400})
    bring(page, event, address="https://example.org/cat.jpg")
    toast = page.locator("#toast")
    assert "Save the image, then add its file." in toast.inner_text()
    box = toast.bounding_box()
    assert 200 < box["y"] < box["y"] + box["height"] < 400  # in view, wherever the page is scrolled to
    page.mouse.click(5, 5)
    assert toast.inner_text() == ""


def test_a_text_and_a_file_that_is_too_large_are_refused_in_sentences_beside_them(page, star, tmp_path, complaints):
    pick(page, {"notes.txt": b"hello", "a.jpg": star})
    settle(page)
    assert refusal(page).startswith("notes.txt This is text, not JPEG")
    assert page.locator(".labels .name").first.inner_text() == "star"  # the other file is not delayed
    held = page.locator(".refused img").get_attribute("src")
    page.evaluate("URL.revokeObjectURL = (address) => revoked.push(address); revoked = []")
    page.get_by_role("button", name="Remove").click()
    assert page.locator(".queue li").count() == 1
    assert page.evaluate("revoked") == [held]
    large = tmp_path / "large.jpg"
    large.write_bytes(bytes(33 * 2**20))
    page.set_input_files("#file", large)
    page.locator(".refused").wait_for()
    assert (
        refusal(page)
        == "large.jpg The request body exceeds 33554432 bytes, the most that VIT_MAX_UPLOAD_BYTES allows one request."
    )
    assert complaints == ["415 /classify", "413 /classify"]
    complaints.clear()


def test_a_file_that_is_there_no_more_is_no_lost_connection(page, star, tmp_path):
    file, held = tmp_path / "gone.jpg", []
    file.write_bytes(star)
    page.route("**/model", lambda route: held.append(route))
    with page.expect_request("**/model"):
        page.reload(wait_until="commit")
    page.locator("#drop").wait_for()
    page.set_input_files("#file", file)
    page.locator(".queue li", has_text="waiting").wait_for()
    file.unlink()
    held[0].continue_()
    page.locator(".refused").wait_for()
    assert refusal(page).startswith("gone.jpg This file cannot be read")
    assert page.get_by_role("button", name="Try again").count() == 0


@pytest.mark.parametrize("trouble", ["full", "late", "offline", "cut"])
def test_a_temporary_failure_can_be_tried_again(page, star, complaints, trouble):
    full = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"detail": "The service is full."}}
    late = {"status": 408, "json": {"detail": "The request did not arrive in time."}}
    answer, said = {
        "full": (lambda route: route.fulfill(**full), "The service is full."),
        "late": (lambda route: route.fulfill(**late), "The request did not arrive in time."),
        "offline": (lambda route: route.abort(), "The server cannot be reached"),
        "cut": (lambda route: route.fulfill(body='{"results": ['), "The server cannot be reached"),
    }[trouble]
    page.route("**/classify", answer, times=1)
    pick(page, {"a.jpg": star})
    page.locator(".refused").wait_for()
    assert refusal(page).startswith(f"a.jpg {said}")
    page.get_by_role("button", name="Try again", exact=True).click()  # enabled after Retry-After
    settle(page)
    assert page.locator(".refused").count() == 0
    assert complaints == {"full": ["503 /classify"], "late": ["408 /classify"]}.get(trouble, [])
    complaints.clear()


def test_a_sample_that_cannot_be_had_says_so(page):
    page.route("**/samples/*", lambda route: route.abort())
    page.click("[data-sample=star]")
    page.locator("#toast", has_text="The server cannot be reached").wait_for()


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
