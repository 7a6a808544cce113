"""app/http/admission.py with a clock that is set by hand."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from app.errors import MalformedRequest, Overloaded, Unavailable
from app.http import admission
from app.http.admission import Admission
from app.lifecycle import Lifecycle


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(admission, "time", clock)
    return clock


def made(**changes) -> Admission:
    return Admission(**{"max_images": 100, "max_wait_s": 1.0, "image_s": 0.1, "lifecycle": Lifecycle(), **changes})


def test_a_full_service_answers_at_once_and_places_come_back():
    places = made(max_images=4, image_s=0.0)
    with places.admit(3):
        assert places.images == 3
        with pytest.raises(Overloaded), places.admit(2):
            pass
        with places.admit(1):
            pass
    with pytest.raises(ZeroDivisionError), places.admit(4):
        1 / 0  # noqa: B018
    with places.admit(4):
        pass


@pytest.mark.parametrize(
    ("ahead", "images", "seconds", "refused"),
    [(10, 1, 99, False), (11, 1, 99, True), (3, 1, 0.39, True), (3, 1, 0.41, False), (3, 2, 0.41, True)],
)
def test_images_wait_as_long_as_the_setting_and_their_deadline_allow(clock, ahead, images, seconds, refused):
    places = made(image_s=0.1, max_wait_s=1.0)
    with places.admit(ahead):
        assert isinstance(places.refusal(images, deadline=clock.now + seconds), Overloaded) == refused


def test_a_refused_client_comes_back_when_the_wait_is_over_and_not_with_all_others():
    places = made(image_s=0.1, max_wait_s=1.0, max_images=1000)
    with places.admit(200):
        found = {int(places.refusal().headers["Retry-After"]) for _ in range(200)}
        assert min(found) == 20
        assert max(found) == 30
    slow = made(image_s=10.0, max_wait_s=1.0)
    with slow.admit(100):
        assert {int(slow.refusal().headers["Retry-After"]) for _ in range(200)} <= set(range(30, 46))


def test_more_images_than_ever_fit_are_no_matter_of_waiting():
    refusal = made(max_images=4).refusal(5)
    assert isinstance(refusal, MalformedRequest)
    assert "at most 4" in refusal.detail


def test_an_idle_service_refuses_nothing_because_of_a_prediction(clock):
    """However slow it was before: otherwise it would never learn that it is faster now."""
    places = made(image_s=1e6)
    assert places.refusal(deadline=clock.now + 0.01) is None
    with places.admit(1):
        assert places.refusal() is None
        with places.admit(1):
            assert places.refusal() is not None


def answer(places: Admission, clock: SimpleNamespace, *, ahead: int, seconds: float) -> None:
    """One image with `ahead` others before it, answered after `seconds`."""
    places.images += ahead
    with places.admit(1) as answered:
        clock.now += seconds
        answered()
    places.images -= ahead


@pytest.mark.parametrize(
    ("known_s", "answers", "image_s", "within"),
    [
        (5.0, 200 * [(1, 0.02)], 0.01, 0.01),
        (0.1, [(0, 1.0), *3 * [(1, 0.2)], (39, 4.0)], 0.1, 0.3),  # many that waited count more than a single one
        (0.01, 80 * [(15, 16.0)], 1.0, 0.3),  # a machine that became slow is believed
    ],
    ids=["learned", "one slow image", "a slow machine"],
)
def test_the_wait_is_learned_from_images_that_waited(clock, known_s, answers, image_s, within):
    """An answer is of one image, after so many others and seconds."""
    places = made(image_s=known_s, max_wait_s=100.0)
    with places.admit(1):
        clock.now += 100  # without an answer it does not count
    assert places.image_s == known_s
    for ahead, seconds in answers:
        answer(places, clock, ahead=ahead, seconds=seconds)
    assert places.image_s == pytest.approx(image_s, rel=within)


def test_a_pause_of_the_machine_teaches_no_wrong_wait(clock):
    places = made(image_s=0.1, max_wait_s=9.0)
    for _ in range(60):
        answer(places, clock, ahead=15, seconds=1.6)
    with ExitStack() as in_work:
        answered = [in_work.enter_context(places.admit(1)) for _ in range(20)]
        clock.now += 600
        for call in answered:
            call()
        assert places.image_s < 0.3  # without a bound it is 29
    for _ in range(20):
        answer(places, clock, ahead=15, seconds=1.6)
    assert places.image_s == pytest.approx(0.1, rel=0.5)


def test_a_stopping_service_finishes_what_began_and_a_failed_one_nothing():
    lifecycle = Lifecycle()
    places = made(lifecycle=lifecycle)
    lifecycle.start_draining()
    assert places.refusal() is None
    lifecycle.fail("It broke.")
    refusal = places.refusal()
    assert isinstance(refusal, Unavailable)
    assert 1 <= int(refusal.headers["Retry-After"]) <= 3
