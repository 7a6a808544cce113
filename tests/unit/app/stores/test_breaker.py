from app.stores.breaker import FAILURES, PAUSE_S, Breaker


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed()


def test_it_opens_after_failures_in_a_row():
    breaker = Breaker(clock=lambda: 100.0)
    fail(breaker, FAILURES - 1)
    breaker.succeeded()
    fail(breaker, FAILURES - 1)
    assert not breaker.is_open
    assert breaker.lets_through()
    fail(breaker, 1)
    assert breaker.is_open
    assert not breaker.lets_through()


def test_one_request_finds_out_after_each_pause_and_a_success_closes_it():
    now = 100.0
    breaker = Breaker(clock=lambda: now)
    fail(breaker, FAILURES)
    for _ in range(2):
        now += PAUSE_S
        assert [breaker.lets_through() for _ in range(3)] == [True, False, False]
        breaker.failed()
    breaker.succeeded()  # perhaps of a request that was under way
    assert not breaker.is_open
    assert all(breaker.lets_through() for _ in range(3))
