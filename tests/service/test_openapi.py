"""The OpenAPI document: requests generated from it get what it promises."""

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
# Combinations of the fields' limits, which took two thirds of the time; `test_request_body.py` tries them one by one.
schema.config.phases.coverage.enabled = False


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    """A service with a key that is known before it runs."""
    with serve(key=KEY, time_scale=0) as running:
        yield running


@pytest.mark.full
@schema.parametrize()
@settings(max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_service_is_as_it_describes_itself(case: Any, service: Server):
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


def test_the_description_is_served(api: ServiceClient):
    served = api.get("/openapi.json").json()
    assert served == schema.raw_schema
    operations = {
        (method, path): operation
        for path, methods in served["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }
    assert set(operations) == {
        *(("post", endpoint.path) for endpoint in ENDPOINTS.values()),
        ("get", "/v1/responses/{id}"),
        ("delete", "/v1/responses/{id}"),
    }
    assert set(operations["post", "/v1/messages"]["responses"]) >= {"400", "401", "405", "408", "413", "429"}
    assert set(operations["delete", "/v1/responses/{id}"]["responses"]) >= {"200", "401", "404", "405"}


def test_the_vendors_fields_and_paths_are_described_where_they_are_understood():
    documents = [openapi_document(tuple(ENDPOINTS.values()), compat=compat) for compat in (False, True)]
    for path in ("/v1/models", "/v1/models/{id}"):
        assert [path in document["paths"] for document in documents] == [False, True]
    for endpoint, field in (("chat", "max_completion_tokens"), ("responses", "tools"), ("messages", "stop_sequences")):
        described = [
            field in document["components"]["schemas"][body(document, ENDPOINTS[endpoint].path)]["properties"]
            for document in documents
        ]
        assert described == [False, True]


def body(document: Any, path: str) -> str:
    """The name of the schema of a request."""
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    return str(content["schema"]["$ref"].rpartition("/")[2])
