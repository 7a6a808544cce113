"""Files from the dialog, a drop, the clipboard and the samples, and the messages for files that fail."""

import base64

import pytest

from tests.browser.stage import settle


def as_file(name: str, data: bytes, kind: str) -> dict:
    return {"name": name, "mimeType": kind, "buffer": data}


def transfer(page, name: str, data: bytes):
    """A DataTransfer with one file, as a drop or a paste delivers it."""
    return page.evaluate_handle(
        """([name, text]) => {
            const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type: "image/jpeg" }));
            return transfer;
        }""",
        [name, base64.b64encode(data).decode()],
    )


def refusal(page) -> str:
    return page.locator(".queue .refused .status").inner_text().replace("\n", " ")


def test_a_picked_file_gets_labels_and_a_map(page, star):
    page.set_input_files("#file", [as_file("mine.jpg", star, "image/jpeg")])
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"
    assert page.locator(".labels li").count() == 5
    assert page.locator(".queue .chosen").inner_text().splitlines()[::2] == ["star", "mine.jpg"]
    assert page.evaluate("[map.naturalWidth, map.naturalHeight]") == [320, 240]


def test_many_files_queue_up_and_the_first_is_shown(page, star):
    page.set_input_files("#file", [as_file(f"{i}.jpg", star, "image/jpeg") for i in range(6)])
    page.locator(".queue .named").nth(5).wait_for()
    shown = page.locator(".queue .chosen").get_attribute("data-id")
    other = page.locator(".queue .named:not(.chosen)").last
    other.locator("button").click()
    settle(page)
    assert page.locator(".queue .chosen").get_attribute("data-id") not in {shown, ""}
    assert page.locator(".queue .chosen").count() == 1


def test_a_dropped_file(page, star):
    data = transfer(page, "dropped.jpg", star)
    page.dispatch_event("body", "dragenter", {"dataTransfer": data})
    assert page.locator("#veil").is_visible()
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    settle(page)
    assert page.locator("#veil").is_hidden()
    assert page.locator(".labels .name").first.inner_text() == "star"


def test_a_pasted_file(page, star):
    page.evaluate(
        "(data) => document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }))",
        transfer(page, "pasted.jpg", star),
    )
    settle(page)
    assert page.locator(".labels .name").first.inner_text() == "star"


@pytest.mark.parametrize("event", ["drop", "paste"])
def test_an_address_is_answered_with_a_sentence(page, event):
    page.set_viewport_size({"width": 390, "height": 400})
    page.evaluate(
        """(name) => {
            const data = new DataTransfer();
            data.setData("text/uri-list", "https://example.org/cat.jpg");
            const [Kind, field] = name === "drop" ? [DragEvent, "dataTransfer"] : [ClipboardEvent, "clipboardData"];
            document.body.dispatchEvent(new Kind(name, { [field]: data, bubbles: true, cancelable: true }));
        }""",
        event,
    )
    toast = page.locator("#toast")
    assert "Save the image, then add its file." in toast.inner_text()
    box = toast.bounding_box()
    assert 200 < box["y"] < box["y"] + box["height"] < 400  # in view, wherever the page is scrolled to
    page.mouse.click(5, 5)
    assert toast.inner_text() == ""


def test_every_sample_is_there(page):
    for button in page.locator("[data-sample]").all():
        assert button.locator("img").evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0


def test_a_text_file_is_refused_in_a_sentence_beside_it(page, star, complaints):
    page.set_input_files("#file", [as_file("notes.txt", b"hello", "text/plain"), as_file("a.jpg", star, "image/jpeg")])
    settle(page)
    assert refusal(page).startswith("notes.txt This is not an image of an accepted type")
    assert page.locator(".labels .name").first.inner_text() == "star"  # the other file is not delayed
    page.get_by_role("button", name="Remove").click()
    assert page.locator(".queue li").count() == 1
    assert complaints == ["415 /classify"]
    complaints.clear()


def test_a_file_that_is_too_large_is_refused_in_a_sentence(page, tmp_path, complaints):
    large = tmp_path / "large.jpg"
    large.write_bytes(bytes(33 * 2**20))
    page.set_input_files("#file", large)
    page.locator(".refused").wait_for()
    assert refusal(page) == "large.jpg The request body exceeds 33554432 bytes (VIT_MAX_UPLOAD_BYTES)."
    assert complaints == ["413 /classify"]
    complaints.clear()


@pytest.mark.parametrize("trouble", ["full", "offline"])
def test_a_temporary_failure_can_be_tried_again(page, star, complaints, trouble):
    answers = {
        "full": lambda route: route.fulfill(
            status=503, headers={"Retry-After": "1"}, json={"detail": "The service is full."}
        ),
        "offline": lambda route: route.abort(),
    }
    page.route("**/classify", answers[trouble], times=1)
    page.set_input_files("#file", [as_file("a.jpg", star, "image/jpeg")])
    page.locator(".refused").wait_for()
    sentences = {"full": "a.jpg The service is full.", "offline": "a.jpg The server cannot be reached"}
    assert refusal(page).startswith(sentences[trouble])
    page.get_by_role("button", name="Try again", exact=True).click()  # enabled after Retry-After
    settle(page)
    assert page.locator(".refused").count() == 0
    assert complaints == (["503 /classify"] if trouble == "full" else [])
    complaints.clear()
