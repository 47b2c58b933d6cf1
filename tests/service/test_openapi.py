"""The OpenAPI document: requests generated from it get what it promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from famnb.endpoints import ENDPOINTS
from famnb.service import Server, serve
from famnb.service.openapi import openapi_document
from tests.support.service_requests import ServiceClient

KEY = "the-key-of-this-test"


schema = schemathesis.openapi.from_dict(openapi_document(tuple(ENDPOINTS.values())))


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    """A service with a key that is known before it runs."""
    with serve(key=KEY, time_scale=0) as running:
        yield running


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_service_is_as_it_describes_itself(case: Any, service: Server) -> None:
    """Every request drawn from the description, sound or not, gets the status, type and shape that it promises."""
    answer = case.call(base_url=service.url)
    if names_nothing(case.body):
        assert answer.status_code in (400, 401, 405)
    else:
        case.validate_response(answer)


def names_nothing(body: Any) -> bool:
    """Whether a body names a response or a tool that is not there, a rule that no JSON Schema can say."""
    match body:
        case {"previous_response_id": str()}:
            return True
        case {"tool_choice": {"function": {"name": name}}}:
            return repr(name) not in repr(body.get("tools"))
        case _:
            return False


def test_the_description_is_served(api: ServiceClient) -> None:
    """Any client may read it; it has one operation for each endpoint and nothing else."""
    served = api.get("/openapi.json").json()
    assert served == schema.raw_schema
    paths = served["paths"]
    assert sorted(operation["operationId"] for path in paths.values() for operation in path.values()) == sorted(
        ("chat", "responses", "web", "messages")
    )
