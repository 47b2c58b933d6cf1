"""When a service that takes no calls is called again, and when it is given up."""

import pytest

from famnb.experiment.budget import CallOutcome
from famnb.experiment.schedule import MAX_FAILURES, ServiceQueue
from tests.experiment.experiments import make_plan

REFUSED = CallOutcome("failed", "call", None, None, 1, "ConnectError", message="no answer")


def busy() -> CallOutcome:
    return CallOutcome("failed", "call", None, 429, 1, "RateLimitError")


@pytest.fixture
def service() -> ServiceQueue:
    """A service with three cells to answer, none of them in flight."""
    service = ServiceQueue("https://api.example.com")
    for cell in make_plan(["a", "b", "c"]):
        service.add(cell)
    return service


def no_limit(_cell):
    return None


def fail(service: ServiceQueue, outcome: CallOutcome, *, now: float) -> float:
    """Fail the one call in flight, and return when the next may start."""
    service.on_unavailable(outcome, now)
    return service.paused_until


def test_pauses_double_until_the_service_is_given_up(service: ServiceQueue):
    now, pauses = 0.0, []
    for _ in range(MAX_FAILURES - 1):
        until = fail(service, REFUSED, now=now)
        pauses.append(until - now)
        assert not service.can_start(until - 0.01, no_limit)
        assert service.can_start(until, no_limit)
        now = until
    assert pauses == [0.5, 1, 2, 4, 8]
    fail(service, REFUSED, now=now)
    assert (service.is_given_up, service.has_work) == (True, False)
    assert service.why_given_up == "https://api.example.com took no call 6 times in a row (ConnectError: no answer)"


def test_calls_that_fail_together_count_once(service: ServiceQueue):
    service.running = 17
    for _ in range(16):
        service.running -= 1
        service.on_unavailable(busy(), 0)
    assert service.failures == 0
    service.running -= 1
    service.on_unavailable(busy(), 0)
    assert service.failures == 1


def test_one_call_finds_out_whether_the_trouble_is_over(service: ServiceQueue):
    fail(service, REFUSED, now=0)
    service.running = 1
    assert not service.can_start(1000, no_limit)
    service.on_available()
    assert service.can_start(1000, no_limit)


def test_a_cell_that_was_put_back_waits_behind_the_others(service: ServiceQueue):
    orders = []
    for _ in range(7):
        cell = service.pop()
        orders.append(cell.order)
        service.requeue(cell)
    assert orders == [0, 1, 2, 0, 1, 2, 0]


def test_a_warm_up_that_was_put_back_stays_first():
    service = ServiceQueue("https://api.example.com")
    for cell in make_plan(["a", "b"], warmup=1):
        service.add(cell)
    service.requeue(service.pop())
    assert service.first.warmup
