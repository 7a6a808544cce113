import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from app.settings import Settings, unknown_variables

NO_PREFIXES = ["vit", "/", "/vit/", "//vit", "/a//b", "/vit?x", "/vit#x", "/v it", "/v%69t", "/./a", "/a/..", "/é"]
NO_ORIGINS = [
    "app.example", "https://app.example/", "https://app.example/x", "https://App.example", "https://app.example:443",
    "http://app.example:80", "null", "https://*.example", "https://a b", "https://", "https://bücher.example",
    "https://user@app.example", "https://app.example?x",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("port", 70_000, "port"),
        *((name, value, "set, but empty: give it a value") for name in ("host", "bundle") for value in ("", " ")),
        ("max_batch", 513, "max_batch"),
        ("store_ttl_s", 0, "store_ttl_s"),
        ("store_ttl_s", "inf", "finite"),  # Redis takes none
        *(("root_path", path, "empty, or a path such as /vit") for path in [*NO_PREFIXES, "/vit\n"]),
        *(("cors_origins", f"http://a,{origin}", "is not an origin as browsers send it") for origin in NO_ORIGINS),
        ("cors_origins", "https://app.example,*", r"\* stands alone"),
    ],
)
def test_invalid_values_are_refused_by_name_or_with_a_sentence(name, value, said):
    for path in ("", "/vit", "/a/b-c/v1.0_x~"):
        assert Settings(root_path=path).root_path == path
    with pytest.raises(ValidationError, match=said):
        Settings(**{name: value})


def test_metrics_cannot_have_the_port_of_the_service():
    assert Settings(port=0, metrics_port=0).metrics_port == 0
    with pytest.raises(ValidationError, match="VIT_METRICS_PORT is the same as VIT_PORT"):
        Settings(port=9000, metrics_port=9000)


@pytest.mark.parametrize("store", ["redis://host:6379/1", "rediss://user:secret@host", "unix:///run/redis.sock"])
def test_an_address_of_redis_is_taken_and_not_shown(store):
    settings = Settings(store=store)
    assert settings.store == store
    assert store not in repr(settings)


@pytest.mark.parametrize(
    ("given", "origins"),
    [
        ("", ()),
        ("*", ("*",)),
        ("https://app.example", ("https://app.example",)),
        ("https://app.example, http://localhost:3000,", ("https://app.example", "http://localhost:3000")),
        ("http://[::1]:8080,http://10.0.0.1,https://xn--bcher-kva.example:8443", ...),
        ("chrome-extension://abcdefgh,capacitor://localhost,http://app.example:443", ...),
    ],
)
def test_origins_are_a_list_with_commas(monkeypatch, given, origins):
    monkeypatch.setenv("VIT_CORS_ORIGINS", given)
    assert Settings().cors_origins == (tuple(given.split(",")) if origins is ... else origins)


def test_an_empty_variable_is_refused_or_means_that_nothing_is_opened(monkeypatch):
    """Set, but empty: perhaps a value that did not arrive. Those of keys are refused in app/http/keys.py."""
    means_none = {"root_path": "", "cors_origins": (), "api_keys": ..., "api_keys_file": ...}
    for field in Settings.model_fields:
        with monkeypatch.context() as patch:
            patch.setenv(f"VIT_{field.upper()}", "")
            if field in means_none:
                assert means_none[field] in (..., getattr(Settings(), field))
            else:
                with pytest.raises(ValidationError, match=field):
                    Settings()


def test_help_has_every_setting_with_its_default_and_its_meaning(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit) as ended:
        CliApp.run(Settings, cli_args=["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')} " in said
        assert f"{field.description} (default:" in said


def test_every_setting_is_a_flag_which_goes_before_its_variable(monkeypatch):
    monkeypatch.setenv("VIT_PORT", "1")
    monkeypatch.setenv("VIT_MAX_BATCH", "2")
    given = CliApp.run(Settings, cli_args=["--port", "3", "--cors-origins=https://a.example,https://b.example"])
    assert (given.port, given.max_batch) == (3, 2)
    assert given.cors_origins == ("https://a.example", "https://b.example")


def test_a_variable_that_is_no_setting_is_named_with_the_nearest():
    said = unknown_variables(["VIT_MAX_BATHC", "VIT_X", "VIT_PORT", "PATH"])
    assert said == [
        "VIT_MAX_BATHC is not a setting and has no effect: is VIT_MAX_BATCH meant?",
        "VIT_X is not a setting and has no effect",
    ]
