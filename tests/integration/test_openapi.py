"""GET /openapi.json: what code generators read."""

from collections import Counter

import pytest

from app.door.paths import INFER, INFER_VERSION, UPLOADS
from app.door.problems import PROBLEM_TYPE


@pytest.fixture(scope="module")
def described(serve):
    with serve() as client:
        yield client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def calls(described):
    return [call for methods in described["paths"].values() for call in methods.values()]


def test_names_are_short_and_no_two_alike(calls):
    names = Counter(call["operationId"] for call in calls)
    assert set(names.values()) == {1}
    assert {"classify", "embed", "attention", "wall", "report", "verify", "cover", "infer", "predict"} <= names.keys()
    assert all(len(call["tags"]) == 1 for call in calls)


def test_every_error_is_the_problem_and_nothing_else(described, calls):
    of_problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for call in calls:
        errors = {status: of_one for status, of_one in call["responses"].items() if int(status) >= 400}
        assert {"401", "431", "500", "503"} <= errors.keys(), call["operationId"]
        assert all(of_one["content"] == of_problem for of_one in errors.values()), call["operationId"]
        assert all(of_one["description"] for of_one in errors.values())
        assert ("requestBody" in call) == ({"408", "413"} <= errors.keys())
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_bodies_are_of_types_that_generators_know(calls):
    bodies = {call["operationId"]: call["requestBody"]["content"].keys() for call in calls if "requestBody" in call}
    image = {"application/octet-stream", "multipart/form-data", "application/json"}
    assert [set(bodies[name]) for name in ("classify", "embed", "predict", "predict_at_root")] == [image] * 4
    assert bodies["infer"] == {"application/octet-stream"}


def test_answers_may_have_more_than_is_described(described):
    schemas = described["components"]["schemas"].values()
    assert [schema["title"] for schema in schemas if schema.get("additionalProperties") is False] == []


def test_every_route_that_takes_images_is_known_to_the_door(described):
    """Routes with a body that is an image are checked, counted and waited for there."""
    bringing = {path for path, methods in described["paths"].items() if "requestBody" in methods.get("post", {})}
    assert bringing == UPLOADS | {INFER, INFER_VERSION}


def test_it_is_the_same_when_asked_again(serve, described):
    with serve() as client:
        assert client.get("/openapi.json").json() == client.get("/openapi.json").json() == described
