"""Imports: model <- export -> app, a client on its own, the order inside app/, libraries in their places, no torch."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.pages import block

FOREIGN = {
    "app": {"model", "export", "lab", "tests", "httpx", "torch", "onnx", "onnxscript", "safetensors", "transformers"},
    "model": {"app", "export", "lab", "tests", "onnx", "onnxruntime", "openvino", "fastapi", "starlette", "uvicorn"},
    "export": {"lab", "tests", "fastapi", "starlette", "uvicorn"},
}

PACKAGES = [*FOREIGN, "vit_serve_client", "vit_serve"]

# The rooms of app/, from the socket inward. Each imports only rooms that stand after it.
ORDER = re.findall(r"\w+", block("order", Path("docs/code.md")))
NEIGHBOURS = {"drawing", "stores"}  # neither imports the other

# Third-party libraries, and the only rooms or modules that import them.
HOMES = {
    "fastapi": {"server", "main", "http", "api"},
    "starlette": {"server", "main", "http", "api"},
    "uvicorn": {"server", "main", "http", "api"},
    "onnxruntime": {"inference.onnxruntime", "inference.cuda.engine", "inference.cuda.recording"},
    "openvino": {"inference.openvino"},
    "redis": {"stores.redis"},
    "tokenizers": {"inference.text"},
    "cachetools": {"stores.memory", "inference.phrases"},
    "httptools": {"http.protocol"},
    "opentelemetry": {"telemetry", "http.access_log"},
    "prometheus_client": {"telemetry.metrics"},
    "PIL": {"images", "drawing", "maps.occlusion"},
}


@cache
def imports(path: Path) -> set[str]:
    """Dotted names of the modules that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            whole = f"{node.module}.{{}}"  # `from app import server` imports a module, not a name
            names = [whole.format(alias.name) for alias in node.names]
            found |= {name if module_file(name) else str(node.module) for name in names}
    return found


def module_file(name: str) -> bool:
    path = Path(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def files(package: str) -> dict[str, Path]:
    """By dotted name."""
    root = Path("client" if package == "vit_serve_client" else ".")
    paths = (root / package).rglob("*.py")
    found = {".".join(path.relative_to(root).with_suffix("").parts): path for path in paths}
    assert found
    return found


def room(module: str) -> str:
    """The first name below app."""
    return module.split(".")[1]


@pytest.mark.parametrize("package", FOREIGN)
def test_arrows_between_the_three_packages(package):
    crossing = {
        name: sorted({m.split(".")[0] for m in imports(path)} & FOREIGN[package])
        for name, path in files(package).items()
    }
    assert {name: found for name, found in crossing.items() if found} == {}


def test_the_client_imports_httpx_and_nothing_else():
    """And what is optional, where it is used: pyarrow; NumPy and Pillow, for those who have images in them."""
    modules = files("vit_serve_client")
    others = {m.split(".")[0] for path in modules.values() for m in imports(path)} - sys.stdlib_module_names
    assert others == {"vit_serve_client", "httpx", "pyarrow", "numpy", "PIL"}
    at_the_top = [
        m.group()
        for path in modules.values()
        for m in re.finditer("(?m)^(from|import) (pyarrow|numpy|PIL)", path.read_text())
    ]
    assert at_the_top == []


def test_every_room_of_app_has_a_place_in_the_order():
    assert {room(name) for name in files("app") if name != "app.__init__"} == set(ORDER)
    assert len(list(Path("app").glob("*.py"))) <= 12  # with the empty __init__.py


def test_each_room_imports_only_rooms_that_stand_after_it():
    forbidden = []
    for name, path in files("app").items():
        for target in imports(path):
            if not target.startswith("app.") or room(target) == room(name):
                continue
            upward = ORDER.index(room(target)) <= ORDER.index(room(name))
            if upward or {room(name), room(target)} == NEIGHBOURS:
                forbidden.append(f"{name} -> {target}")
    assert forbidden == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circles(package):
    modules = {name.removesuffix(".__init__"): imports(path) for name, path in files(package).items()}
    TopologicalSorter(modules).prepare()  # raises CycleError, which names the modules of a circle


@pytest.mark.parametrize("library", HOMES)
def test_third_party_libraries_stay_in_their_places(library):
    users = {
        name.removeprefix("app.")
        for name, path in files("app").items()
        if any(module.split(".")[0] == library for module in imports(path))
    }
    assert users
    assert {user for user in users if user not in HOMES[library] and user.split(".")[0] not in HOMES[library]} == set()


def test_packages_run_nothing_at_import():
    inits = [path for package in PACKAGES for path in files(package).values() if path.name == "__init__.py"]
    of_users = ("model/checkpoints", "client/vit_serve_client", "vit_serve")  # names that they import
    exported = {Path(folder, "__init__.py") for folder in of_users}
    assert [str(path) for path in inits if path.read_text() and path not in exported] == []


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("app.drawing.heatmap", {"onnxruntime", "fastapi", "starlette"}),
        ("app.inference.batcher", {"fastapi", "starlette", "onnxruntime", "openvino"}),
        ("app.images.fork_server", {"fastapi", "starlette", "pydantic", "onnxruntime", "asyncio"}),
        ("app.images.preparer", {"fastapi", "starlette", "pydantic", "onnxruntime", "asyncio"}),
        ("app.backend", {"fastapi", "starlette", "uvicorn"}),  # they are imported while it starts
        ("app.server", {"fastapi", "starlette"}),
    ],
)
def test_what_a_module_does_not_load(module, unwanted):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(loaded.stdout.split()) & unwanted == set()


def test_the_service_answers_without_torch_and_without_telemetry():
    """Every heavy package of the other half is made impossible to import; then an image is classified. OpenVINO would
    import what reports to its makers.
    """
    blocked = sorted((FOREIGN["app"] - {"lab", "tests", "httpx"}) | {"sympy", "tqdm"})
    code = f"""
import sys
for name in {blocked}: sys.modules[name] = None
from pathlib import Path
from fastapi.testclient import TestClient
from app.main import create_app
from app.settings import Settings
with TestClient(create_app(Settings(engine="openvino"))) as client:
    answer = client.post("/classify", content=Path("docs/star.jpg").read_bytes()).json()
    assert client.get(answer["results"][0]["attention"]).headers["content-type"] == "image/png"
print("answered", *({{"openvino", "openvino_telemetry"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "answered openvino\n", done.stderr
