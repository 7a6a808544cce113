"""app/client/requests.py: how an answer is read."""

import pytest

from app.client.answers import ServiceProblem
from app.client.client import Client


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"", b"[]", b'{"results": 7}', b'{"results": [{}]}'])
def test_what_another_server_answers_is_a_problem(answering, body):
    with Client(answering((200, {}, body))) as client, pytest.raises(ServiceProblem) as refused:
        client.classify(b"image")
    assert (refused.value.problem.status, refused.value.problem.title) == (200, "No answer of the service")


def test_when_to_ask_again_is_known(answering):
    with Client(answering((503, {"Retry-After": "7"}, b""))) as client, pytest.raises(ServiceProblem) as refused:
        client.model()
    assert refused.value.retry_after_s == 7
