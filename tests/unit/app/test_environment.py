import importlib.util
import re
from pathlib import Path

import pytest

from app.environment import OF_LIBRARIES, take_away, unknown_variables


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
