"""Who may import whom: model <- export -> app, and the service starts where torch does not exist."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FOREIGN = {
    "app": {"model", "export", "tests", "torch", "onnx", "onnxscript", "safetensors"},
    "model": {"app", "export", "tests", "onnx", "onnxruntime", "fastapi", "starlette", "uvicorn"},
    "export": {"tests", "fastapi", "starlette", "uvicorn"},
}


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("package", FOREIGN)
def test_arrows(package):
    files = list(Path(package).rglob("*.py"))
    assert files
    crossing = {str(path): sorted(imported(path) & FOREIGN[package]) for path in files}
    assert {path: names for path, names in crossing.items() if names} == {}


def test_docker_is_no_package():
    """With an __init__.py it would hide the Docker SDK."""
    assert not Path("docker/__init__.py").exists()


def test_the_service_answers_without_torch():
    """Every heavy package of the other half is made impossible to import; then a picture is classified."""
    blocked = sorted((FOREIGN["app"] - {"tests"}) | {"sympy", "tqdm"})
    code = f"""
import sys
for name in {blocked}: sys.modules[name] = None
from io import BytesIO
from fastapi.testclient import TestClient
from PIL import Image
from app.main import create_app
out = BytesIO()
Image.new("RGB", (80, 60), "teal").save(out, "PNG")
with TestClient(create_app()) as client:
    answer = client.post("/classify", content=out.getvalue()).json()
    assert client.get(answer["results"][0]["attention"]).headers["content-type"] == "image/png"
print("answered")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "answered\n", done.stderr
