import importlib.util
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import OF_LIBRARIES, Settings, described, not_arguments, take_away, unknown_variables, variable

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
        ("device", "tpu", "device"),
        ("max_batch", 513, "max_batch"),
        ("thumbnail_px", 2049, "thumbnail_px"),
        ("store_timeout_s", 10.1, "store_timeout_s"),
        ("store_connect_timeout_s", 10.1, "store_connect_timeout_s"),
        ("gpu", -1, "gpu"),
        ("store_ttl_s", 0, "store_ttl_s"),
        ("store_ttl_s", "inf", "finite"),  # Redis takes none
        ("store", "postgres://x", "store"),
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
    with pytest.raises(ValidationError, match=r"VIT_METRICS_PORT is the same as (VIT_)?PORT"):
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


def test_an_old_name_is_taken_and_warned_of_unless_both_names_differ(monkeypatch):
    monkeypatch.setenv("VIT_MAX_QUEUE_IMAGES", "7")
    assert Settings().max_images_in_progress == Settings(max_queue_images=7).max_images_in_progress == 7
    now = "is now VIT_MAX_IMAGES_IN_PROGRESS: change it, because the next release ignores the old name"
    assert unknown_variables(["VIT_MAX_QUEUE_IMAGES"]) == [f"VIT_MAX_QUEUE_IMAGES {now}"]
    assert unknown_variables(["VIT_MAX_QEUE_IMAGES"])[0].endswith(": is VIT_MAX_IMAGES_IN_PROGRESS meant?")
    assert "VIT_DRAWING_THREADS=2" in not_arguments(["--worker-threads=2"])
    monkeypatch.setenv("VIT_MAX_IMAGES_IN_PROGRESS", "7")
    assert Settings().max_images_in_progress == 7
    monkeypatch.setenv("VIT_MAX_IMAGES_IN_PROGRESS", "8")
    with pytest.raises(ValidationError, match="differ: set only the new one"):
        Settings()


def test_a_user_of_make_reads_the_words_of_make(monkeypatch):
    words = ("port", "bundle", "device", "max_batch")
    monkeypatch.delenv("MAKELEVEL", raising=False)
    assert [*map(variable, words)] == ["VIT_PORT", "VIT_BUNDLE", "VIT_DEVICE", "VIT_MAX_BATCH"]
    monkeypatch.setenv("MAKELEVEL", "1")
    assert [*map(variable, words)] == ["PORT", "BUNDLE", "DEVICE", "VIT_MAX_BATCH"]


def test_an_empty_variable_is_refused_or_means_that_nothing_is_opened(monkeypatch):
    """Set, but empty: perhaps a value that did not arrive. Those of keys are refused in app/door/keys.py."""
    means_none = {"root_path": "", "cors_origins": (), "api_keys": ..., "api_keys_file": ...}
    for field in Settings.model_fields:
        with monkeypatch.context() as patch:
            patch.setenv(f"VIT_{field.upper()}", "")
            if field in means_none:
                assert means_none[field] in (..., getattr(Settings(), field))
            else:
                with pytest.raises(ValidationError, match=field):
                    Settings()


def test_help_has_every_setting_with_its_default_and_its_meaning():
    lines = described().splitlines()
    for name, field in Settings.model_fields.items():
        line = next(line for line in lines if line.startswith(f"VIT_{name.upper()} ("))
        default = "app/demo" if name == "bundle" else field.default
        assert line.endswith(f"({default if default not in (None, '', ()) else 'none'})")
        said = lines[lines.index(line) + 1]
        assert (field.description or "").replace("`", "").startswith(said.strip())
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--port 9111", "--port is not an argument: settings are variables of the environment. Is VIT_PORT=9111 "),
        ("--port=9111 --host 0.0.0.0", "Is VIT_PORT=9111 VIT_HOST=0.0.0.0 python -m app meant?"),
        ("--max-bach=4 --reload", "Is VIT_MAX_BATCH=4 python -m app meant?"),
        ("VIT_LOG_LEVEL=debug", "Is VIT_LOG_LEVEL=debug python -m app meant?"),
        ("--device --gpu 1", "Is VIT_DEVICE=... VIT_GPU=1 python -m app meant?"),
        ("app/demo", "Is VIT_BUNDLE=app/demo python -m app meant?"),
        ("--api-keys=secret", "Is VIT_API_KEYS=... python -m app meant?"),
        ("--store redis://user:secret@host", "Is VIT_STORE=... python"),
        ("--workers 4", "--workers is not an argument: settings are variables of the environment. --help lists"),
        ("x" * 300, "is not an argument: settings are variables of the environment. --help lists"),
    ],
)  # fmt: skip
def test_arguments_are_refused_with_the_settings_that_may_be_meant(given, meant):
    said = not_arguments(given.split())
    assert meant in said
    assert "secret" not in said


def test_a_variable_that_is_no_setting_is_named_with_the_nearest():
    said = unknown_variables(["VIT_MAX_BATHC", "VIT_X", "VIT_PORT", "PATH"])
    assert said == [
        "VIT_MAX_BATHC is not a setting and has no effect: is VIT_MAX_BATCH meant?",
        "VIT_X is not a setting and has no effect",
    ]


def test_variables_of_libraries_are_taken_away_and_others_stay():
    environment = {**dict.fromkeys(OF_LIBRARIES, ""), "OTEL_SERVICE_NAME": "a", "VIT_PORT": "1"}
    said = take_away(environment)
    assert environment == {"OTEL_SERVICE_NAME": "a", "VIT_PORT": "1"}
    assert [sentence.split()[0] for sentence in said] == [*OF_LIBRARIES]
    assert take_away(environment) == []


@pytest.mark.parametrize(("names", "lacking"), [("tracecontext, baggage", ""), ("none", ""), ("baggage,b3", "b3")])
def test_propagators_that_no_package_provides_are_taken_away(names, lacking):
    environment = {"OTEL_PROPAGATORS": names}
    said = take_away(environment)
    assert ("OTEL_PROPAGATORS" in environment, lacking in "".join(said)) == (not lacking, True)


READS = re.compile(
    r"""os\.(?:environ(?:\.get\(|\[)|getenv\()\s*["'](\w+)|["'](\w+)["'] in os\.environ|["'](PILLOW_[AB]\w+)"""
)
MAY_ACT = {  # of a library of the service, with the reason
    "prometheus_client": {"PROMETHEUS_DISABLE_CREATED_SERIES", "PROMETHEUS_LEGACY_NAME_VALIDATION"},  # shape /metrics
    "uvicorn": {"FORWARDED_ALLOW_IPS"},  # of a client, which changes no answer here
    "PIL": {"DISPLAY", "WAYLAND_DISPLAY", "WINDIR", "XDG_DATA_HOME", "XDG_DATA_DIRS"},  # of screens, and fonts by name
    "fastapi": {"FASTAPI_ENV", "FASTAPI_OTEL_AUTO_CONFIGURE"},  # of what is given in code
    "redis": set(),
    "starlette": set(),
    "python_multipart": set(),
}


@pytest.mark.parametrize("package", MAY_ACT)
def test_a_library_reads_no_variable_that_is_not_known_here(package):
    folder = Path(importlib.util.find_spec(package).origin).parent
    matches = (match for file in folder.rglob("*.py") for match in READS.findall(file.read_text()))
    found = {name for match in matches for name in match if name and not name.startswith("OTEL_")}
    assert found - MAY_ACT[package] <= {*OF_LIBRARIES}
