from app.lifecycle import Lifecycle


def state(lifecycle: Lifecycle) -> tuple[bool, bool, bool, bool]:
    return lifecycle.ready, lifecycle.leaving, lifecycle.draining, lifecycle.live


def test_from_ready_to_drained(lifecycle):
    assert state(lifecycle) == (True, False, False, True)
    lifecycle.leave()
    assert state(lifecycle) == (False, True, False, True)
    lifecycle.start_draining()
    assert state(lifecycle) == (False, True, True, True)
    assert lifecycle.reason.endswith(".")


def test_the_first_failure_is_reported_once_and_stays(lifecycle):
    failures = []
    lifecycle.on_failure = lambda: failures.append(lifecycle.failure)
    lifecycle.fail("First.")
    lifecycle.fail("Second.")
    lifecycle.leave()
    assert failures == ["First."]
    assert lifecycle.reason == "First."
    assert state(lifecycle) == (False, True, False, False)
