"""Error bodies of every shape, and when to come back."""

import pytest
from hypothesis import given

from famnb import errors
from famnb.events import Fault
from famnb.wire import errors as faults
from famnb.wire import lenient_json
from tests.support.strategies import json_values


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": {"message": "no", "type": "t", "code": "c", "param": "p"}}', Fault("no", "t", "c", "p")),
        ('{"error": {"type": "error", "error": {"type": "t", "message": "no"}}}', Fault("no", "t")),
        ('{"type": "error", "error": {"type": "t", "message": "no"}}', Fault("no", "t")),
        ('{"error": {"message": "no", "code": 17, "type": null, "param": ["p"]}}', Fault("no", None, "17")),
        ('{"error": "no", "code": "c"}', Fault("no", None, "c")),
        ('{"error": null, "message": "no"}', Fault("no")),
        ('{"error": "", "message": "no"}', Fault("no")),
        ('{"errors": [{"message": "no"}]}', Fault("no")),
        ('[{"error": {"message": "no"}}]', Fault("no")),
        ('{"detail": "no"}', Fault("no")),
        ('{"detail": [{"loc": ["body", "model"], "msg": "no"}, {"msg": "so"}]}', Fault("body.model: no; so")),
        ('{"message": "no", "code": 400}', Fault("no", None, "400")),
        ('{"error": {"message": "no", "metadata": {"provider_name": "X", "raw": "busy"}}}', Fault("no (X: busy)")),
        (r'{"error": {"message": "no", "metadata": {"raw": "{\"error\": {\"message\": \"so\"}}"}}}', Fault("no (so)")),
        ('"no"', Fault("no")),
        ("upstream said no", Fault("upstream said no")),
        ("<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>", Fault("502 Bad Gateway")),
        ("<style>p {}</style><p>no <b>way</b></p>", Fault("no way")),
    ],
)
def test_the_best_message_is_found(body: str, expected: Fault):
    error = faults.read(400, {}, body.encode())
    assert Fault(error.args[0], error.type, error.code, error.param) == expected


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b"42", b'{"error": {}}', b"<html></html>"])
def test_a_body_that_says_nothing_leaves_the_status(body: bytes):
    assert str(faults.read(503, {}, body)) == "503: Service Unavailable (the response says no more)"
    assert str(faults.read(599, {}, body)) == "599: the response says no more"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequestError),
        (401, errors.AuthenticationError),
        (403, errors.PermissionDeniedError),
        (404, errors.NotFoundError),
        (409, errors.APIStatusError),
        (413, errors.RequestTooLargeError),
        (422, errors.UnprocessableEntityError),
        (429, errors.RateLimitError),
        (500, errors.ServerError),
        (529, errors.ServerError),
    ],
)
def test_each_status_has_its_class(status: int, kind: type[Exception]):
    error = faults.read(status, {"X-Request-Id": "req_1"}, b"<html>")
    assert type(error) is kind
    assert (error.status, error.request_id) == (status, "req_1")


@given(json_values)
def test_no_body_breaks_the_reading(body: object):
    for shape in (body, {"error": body}, {"error": {"message": body, "type": body, "code": body}}, {"detail": body}):
        assert str(faults.read(500, {}, lenient_json.encode(shape)))


def test_a_long_message_is_cut():
    assert len(str(faults.read(500, {}, b"x" * 200_000))) < 520


DATE = "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "300", "retry-after": "5"}, 0.3),
        ({"retry-after-ms": "nope", "retry-after": "5"}, 5.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "2, 5"}, 5.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT", "date": DATE}, None),
        ({"retry-after": "Tuesday, 14-Nov-23 22:13:50 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Tue Nov 14 22:13:50 2023", "date": DATE}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT", "date": "today"}, None),
        ({"retry-after": DATE, "date": DATE}, None),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "NaN"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None):
    assert faults.parse_retry_after(headers) == seconds
    assert faults.read(429, headers, b"").retry_after == seconds


def test_the_limits_of_the_service_are_on_the_error():
    headers = {"X-RateLimit-Remaining-Requests": "0", "anthropic-ratelimit-tokens-reset": "soon", "date": "today"}
    error = faults.read(429, headers, b"{}")
    assert error.limits == {"remaining-requests": "0", "tokens-reset": "soon"}
