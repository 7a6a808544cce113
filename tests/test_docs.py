"""The documentation is true: tables against the code, the tree against the files, the example against the service."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from app.errors import ServiceError
from app.main import VERSION
from app.settings import DEMO_BUNDLE, Settings
from tests.benchmarks.__main__ import BENCHMARKS, FOLDER, PAGES, table

README = Path("README.md").read_text()
CHANGELOG = Path("CHANGELOG.md").read_text()
LOADS = ("catalogue", "bodies", "overload", "rolling", "soak", "soak_windows", "store_faults")
RECORDED = [*(FOLDER / f"{name}.json" for name in BENCHMARKS), *(Path(f"tests/load/{name}.json") for name in LOADS)]
CODE = {".py", ".png", ".html", ".yaml", ".conf", ".js", ".css"}


def block(name: str) -> str:
    """What stands between the comments that name a part of the README."""
    found = re.search(f"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", README, re.DOTALL)
    assert found, f"README.md has no part {name}"
    return found[1]


def settings_table() -> str:
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        assert field.default is not PydanticUndefined
        default = field.default.relative_to(Path.cwd()) if name == "bundle" else field.default
        rows.append(f"| `VIT_{name.upper()}` | `{default}` | {field.description} |")
    return "\n".join(rows)


def errors_table() -> str:
    rows = ["| status | type | when |", "| --- | --- | --- |"]
    for kind in sorted(ServiceError.__subclasses__(), key=lambda kind: (kind.status, kind.kind)):
        rows.append(f"| {kind.status.value} | `urn:vit-serve:problem:{kind.kind}` | {kind.title} |")
    return "\n".join(rows)


def test_the_settings_table():
    assert block("settings") == settings_table()


def test_the_errors_table():
    assert block("errors") == errors_table()


def test_every_setting_is_in_the_changelog():
    assert [name for name in Settings.model_fields if f"`VIT_{name.upper()}`" not in CHANGELOG] == []


def test_the_file_tree_names_every_file_of_the_product():
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    product = [Path(p) for p in tracked if p.startswith(("app/", "model/", "export/")) and Path(p).suffix in CODE]
    tree = block("tree")
    assert [
        str(p) for p in product if p.name != "__init__.py" and not re.search(rf"\b{re.escape(p.name)}\b", tree)
    ] == []


def test_the_example_answer_is_what_the_service_answers(client):
    command, answer = re.search(r"\$ (curl .*?)\n(\{.*?\n\})", README, re.DOTALL).groups()
    picture, url = re.search(r"@(\S+) .*?(/classify\S*?)'?$", command).groups()
    expected, found = json.loads(answer), client.post(url, content=Path(picture).read_bytes()).json()
    for said, given in zip(expected["results"], found["results"], strict=True):
        assert said.pop("id") in said.pop("attention")
        assert given.pop("id") in given.pop("attention")
        for a, b in zip(said["predictions"], given["predictions"], strict=True):
            assert a.pop("score") == pytest.approx(b.pop("score"), abs=2e-3)
    assert found["model"]["digest"].startswith(expected["model"].pop("digest").rstrip("."))
    found["model"].pop("digest")
    assert expected == found


def test_the_figures_of_the_demo_model():
    figures = json.loads((DEMO_BUNDLE / "manifest.json").read_text())["figures"]
    for name in ("top1_accuracy", "rollout_on_object", "last_layer_on_object", "chance_on_object"):
        assert f"{100 * figures[name]:.1f} %" in README, name


def test_every_make_target_is_documented():
    targets = re.findall(r"^([a-z-]+):.*## ", Path("Makefile").read_text(), re.MULTILINE)
    assert [t for t in targets if f"make {t}" not in README and t != "help"] == []


def test_the_version_is_that_of_the_project():
    assert tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"] == VERSION


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)|<img src=\"([^\"]+)\"", README)
    files = [a or b for a, b in targets if not (a or b).startswith("http")]
    assert files
    assert [f for f in files if not Path(f).exists()] == []


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_a_table_is_its_recorded_result(recorded):
    name = recorded.stem
    places = re.findall(f"<!-- {name} -->\n(.*?)<!-- /{name} -->", "".join(p.read_text() for p in PAGES), re.DOTALL)
    assert places == [f"{table(json.loads(recorded.read_text()))}\n" if recorded.exists() else ""]


def test_the_figures_of_int8_are_those_of_its_benchmark():
    rows = {row["linear layers of the blocks"]: row for row in json.loads((FOLDER / "precision.json").read_text())}
    fp32, int8 = rows["fp32"], rows["int8, as exported"]
    lines = [line.split(" | ") for line in block("int8").splitlines()[2:]]
    figures = [[cell.strip(" |") for cell in line[1:]] for line in lines]
    assert figures[:2] == [[f"{r[f'time at batch {b}']:.2f}" for r in (fp32, int8)] for b in (1, 8)]
    assert figures[2] == [f"{float(r['accuracy'].rstrip('%')):.2f} %" for r in (fp32, int8)]
    assert figures[3] == [f"{float(r['agreement'].rstrip('%')):g} %" for r in (fp32, int8)]
