import pytest

from app.errors import CannotStart, Unauthorized
from app.http.keys import ApiKeys, open_keys, read_keys
from app.settings import Settings

KEYS = ApiKeys({"old-key": "unnamed", "new.key~2==": "team"}, metrics_port=0)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": "Bearer old-key2"},
        {"authorization": "Basic old-key"},
        {"authorization": "old-key"},
        {"x_api_key": ""},
        {"x_api_key": "\xff\xfe"},
    ],
)
def test_each_of_the_keys_is_accepted_and_any_other_refused(request_of, headers):
    for right, name in (
        ({"authorization": "Bearer old-key"}, "unnamed"),
        ({"authorization": "bearer new.key~2=="}, "team"),
        ({"x_api_key": "new.key~2=="}, "team"),
        ({"authorization": "Basic b2xk", "x_api_key": "old-key"}, "unnamed"),
    ):
        assert KEYS.check(request_of("/classify", "POST", **right)) == name
    with pytest.raises(Unauthorized) as refused:
        KEYS.check(request_of("/classify", "POST", **headers))
    assert refused.value.headers == {"WWW-Authenticate": 'Bearer realm="vit-serve"'}


def test_public_paths_need_no_key_nor_metrics_at_a_port_of_their_own_and_without_keys_nothing(request_of):
    KEYS.check(request_of("/livez"))  # test_paths.py has the public ones
    ApiKeys({"a": "unnamed"}, metrics_port=9000).check(request_of("/metrics", port=9000))
    with pytest.raises(Unauthorized):
        KEYS.check(request_of("/metrics"))
    no_keys = ApiKeys({}, metrics_port=0)
    no_keys.check(request_of("/classify", "POST"))
    assert (bool(no_keys), bool(KEYS)) == (False, True)


def test_keys_come_from_a_list_and_a_file(tmp_path):
    (tmp_path / "keys").write_text("\ufeffthree\n\n  c.3=four  \n")  # editors on Windows write its mark
    found = {"one": "unnamed", "two": "b-2", "key=": "unnamed", "k+/~=": 32 * "n", "three": "unnamed", "four": "c.3"}
    assert read_keys(f"one, b-2=two,key=,{32 * 'n'}=k+/~=,", tmp_path / "keys") == found
    assert read_keys(None, None) == {}


@pytest.mark.parametrize(
    ("listed", "content", "said"),
    [
        *((listed, b"key", r"VIT_API_KEYS has no key\. To serve without") for listed in ("", " ", ",", " , ")),
        ("two words", b"key", "An API key consists of"),
        ("schlüssel", b"key", "An API key consists of"),
        *((entry, b"key", "An API key consists of") for entry in ("a/b=key", f"{33 * 'n'}=key", "a=b=key", "=key")),
        (None, b"\xff\xfe", "VIT_API_KEYS_FILE cannot be read"),
        (None, b"", "VIT_API_KEYS_FILE has no key"),
        (None, b"two words\n", "An API key consists of"),
    ],
)
def test_no_key_and_one_that_no_header_can_carry_stop_the_start(tmp_path, listed, content, said):
    if content is not None:
        (tmp_path / "keys").write_bytes(content)
    with pytest.raises(CannotStart, match=f"^{said}"):
        read_keys(listed, tmp_path / "keys")


@pytest.mark.parametrize("variable", ["VIT_API_KEYS", "VIT_API_KEYS_FILE"])
def test_a_secret_that_did_not_arrive_leaves_no_service_open(monkeypatch, variable):
    assert not open_keys(Settings())
    monkeypatch.setenv(variable, "")
    with pytest.raises(CannotStart, match=f"^{variable} "):
        open_keys(Settings())
