from app.lifecycle import Lifecycle


def state(lifecycle: Lifecycle) -> tuple[bool, bool, bool]:
    return lifecycle.reason is None, lifecycle.leaving, lifecycle.draining


def test_from_ready_to_drained(lifecycle):
    assert state(lifecycle) == (True, False, False)
    lifecycle.leave()
    assert state(lifecycle) == (False, True, False)
    lifecycle.start_draining()
    assert state(lifecycle) == (False, True, True)
    assert lifecycle.reason.endswith(".")


def test_the_first_failure_is_reported_once_and_stays(lifecycle):
    failures = []
    lifecycle.when_failed(lambda: failures.append(lifecycle.failure))
    lifecycle.fail("First.")
    lifecycle.fail("Second.")
    lifecycle.leave()
    assert failures == ["First."]
    assert lifecycle.reason == lifecycle.failure == "First."
    lifecycle.when_failed(lambda: failures.append(lifecycle.failure))  # who listens later learns of it too
    assert failures == ["First."] * 2
