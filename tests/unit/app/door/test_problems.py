"""app/door/problems.py: one shape for every kind of error."""

import json

import pytest

from app.door.problems import PROBLEM_TYPE, problem_of, respond, respond_to
from app.errors import UnusableImage


@pytest.mark.parametrize("detail", ["x", "é 星", 'a "quoted" one'])
def test_a_problem_names_the_request_it_belongs_to(detail):
    state = {"request_id": "r-1"}
    response = respond_to(UnusableImage(detail), state)
    assert json.loads(response.body) == {
        "type": "urn:vit-serve:problem:unusable-image",
        "title": "The image cannot be used",
        "status": 422,
        "detail": detail,
        "error": detail,
        "instance": "urn:request:r-1",
    }
    assert response.status_code == 422
    assert response.headers["content-type"] == PROBLEM_TYPE
    assert response.body.endswith(b"}\n")


def test_further_members_are_kept_and_the_given_problem_is_not_changed():
    problem = problem_of(UnusableImage("x"), errors=[{"pointer": "/images/0"}])
    body = json.loads(respond(problem, {"request_id": "r"}).body)
    assert (body["errors"], problem.instance) == ([{"pointer": "/images/0"}], None)
