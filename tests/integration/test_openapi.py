"""GET /openapi.json: what code generators read."""

import json
import re

import pytest

from app.http.problems import PROBLEM_TYPE


@pytest.fixture(scope="module")
def described(client):
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def calls(described):
    return [call for methods in described["paths"].values() for call in methods.values()]


def test_every_error_is_the_problem_and_nothing_else(described, calls):
    of_problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for call in calls:
        assert call["responses"].keys() == {"200", "default"}, call["operationId"]
        error = call["responses"]["default"]
        assert error["content"] == of_problem
        statuses = set(re.findall(r"^- (\d+): \w", error["description"], re.MULTILINE))
        assert statuses >= {"401", "431", "500", "503"}
        assert ("requestBody" in call) == (statuses >= {"408", "413"})
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_a_person_can_read_it(calls):
    """FastAPI's own summary is the function's name, and a parameter that may be missing would be "integer or null"."""
    named = {call["operationId"].removesuffix("_of_version").replace("_", " ") for call in calls}
    assert [call["summary"] for call in calls if call["summary"].lower() in named] == []
    assert [call["operationId"] for call in calls if '"null"' in json.dumps(call.get("parameters"))] == []


@pytest.mark.parametrize("path", ["/", "/attention", "/classify", "/embed", "/predict"])
def test_the_example_of_json_can_be_sent(client, described, path):
    example = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["example"]
    assert client.post(path, json=example).status_code == 200


def test_bodies_are_of_types_that_generators_know(calls):
    bodies = {call["operationId"]: call["requestBody"]["content"].keys() for call in calls if "requestBody" in call}
    image = {"application/octet-stream", "multipart/form-data", "application/json"}
    assert [set(bodies[name]) for name in ("classify", "embed", "predict", "predict_at_root")] == [image] * 4
    assert bodies["infer"] == {"application/octet-stream"}


def test_tensors_are_answered_in_json_or_binary(described):
    answers = described["paths"]["/v2/models/{name}/infer"]["post"]["responses"]["200"]["content"]
    assert answers.keys() == {"application/json", "application/octet-stream"}
