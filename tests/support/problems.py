"""What all errors over HTTP have in common."""

from typing import Any


def check_problem(response: Any) -> None:
    """The response is RFC 9457, its detail is a sentence, and nothing internal leaks."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"].startswith("urn:vit-serve:problem:")
    assert problem["status"] == response.status_code
    assert problem["title"]
    assert problem["detail"].endswith(".")
    assert "Traceback" not in response.text
    assert "/" not in problem["detail"].replace("multipart/form-data", "").replace("/classify", "")
