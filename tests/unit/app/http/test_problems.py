"""app/http/problems.py: one shape for every kind of error."""

import json

from app.errors import Overloaded, UnusableImage
from app.http.problems import PROBLEM_TYPE, respond_to
from app.telemetry.request_state import RequestState


def test_a_problem_names_the_request_it_belongs_to():
    detail = 'é 星 and a "quoted" one'
    response = respond_to(UnusableImage(detail), RequestState(request_id="r-1"))
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


def test_members_are_added_or_take_the_place_of_the_errors_own_and_the_error_is_not_changed():
    """Images of several requests can share an error, and a copy of one keeps its header fields."""
    error = Overloaded("x", wait_s=25)
    said = error.saying(errors=[{"pointer": "/images/0"}], detail="y")
    response = respond_to(said, RequestState(request_id="r"))
    body = json.loads(response.body)
    assert (body["errors"], body["detail"], body["error"]) == ([{"pointer": "/images/0"}], "y", "y")
    assert (error.members, response.headers["retry-after"]) == ({}, error.headers["Retry-After"])
