"""Variables of the environment that are not settings of this service, or have an old name: what to do about each."""

from collections.abc import Iterable, MutableMapping
from importlib.metadata import entry_points

from app.errors import is_meant
from app.settings import RENAMED, Settings

# Variables that libraries read by themselves, often inherited from another service, and what they would do here.
# Those of OpenTelemetry are documented and stay. ORT_ and the engines' other variables are for those who look for a
# fault in an engine; the known answer tells if they change numbers.
PROPAGATORS = "OTEL_PROPAGATORS"
OF_LIBRARIES = {
    **dict.fromkeys(
        ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"), "prometheus_client would write files to that folder"
    ),
    "WEB_CONCURRENCY": "uvicorn would count processes by it, and this service is one",
    **dict.fromkeys(
        ("PILLOW_ALIGNMENT", "PILLOW_BLOCK_SIZE", "PILLOW_BLOCKS_MAX"),
        "Pillow would keep memory that the limits do not know",
    ),
    "ORT_LOAD_CONFIG_FROM_MODEL": "ONNX Runtime would take options from the bundle in place of these settings",
    "NVIDIA_TF32_OVERRIDE": "a GPU would compute float32 with fewer digits",
}


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each VIT_* variable of the environment that is not a setting, or has an old name."""
    known = [f"VIT_{field.upper()}" for field in Settings.model_fields]
    renamed = {f"VIT_{old.upper()}": f"VIT_{new.upper()}" for old, new in RENAMED.items()}
    return [
        f"{name} is now {renamed[name]}: change it, because the next release ignores the old name"
        if name in renamed
        else f"{name} is not a setting and has no effect{is_meant(name, known, renamed)}"
        for name in names
        if name.startswith("VIT_") and name not in known
    ]


def take_away(environment: MutableMapping[str, str]) -> list[str]:
    """Take OF_LIBRARIES out of the environment, before the libraries are imported. Returns a sentence for each that was
    there.
    """
    there = [name for name in OF_LIBRARIES if environment.pop(name, None) is not None]
    said = [f"{name} has no effect: {OF_LIBRARIES[name]}" for name in there]
    if lacking := _lacking(environment.get(PROPAGATORS, "")):
        del environment[PROPAGATORS]  # OpenTelemetry would end the process while it is imported
        said.append(f"{PROPAGATORS} has no effect: {lacking} is not installed, and traces continue by W3C's headers")
    return said


def _lacking(propagators: str) -> str:
    """The first of these propagators of OpenTelemetry that no package provides; empty if all are there."""
    names = [name.strip() for name in propagators.split(",")] if propagators else []
    known = {entry.name for entry in entry_points(group="opentelemetry_propagator")} if names else set()
    return next((name for name in names if name.lower() != "none" and name not in known), "")
