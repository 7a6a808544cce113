"""The documentation is true: tables against the code, folders against the files, the example against the service."""

import json
import math
import re
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from app.errors import ServiceError
from app.images.preparer import THUMBNAIL_PX
from app.maps.record import Maps, RecordFormat
from app.settings import DEMO_BUNDLE, VERSION, Settings
from lab.benchmarks.figures import FIGURES, MARK
from lab.benchmarks.page import BLOCK, DOCS, PAGES, blocks, table, written
from lab.benchmarks.record import record_paths
from lab.benchmarks.sizing import CORES_BESIDE_GPU, replicas
from lab.parity import record as parity_record
from lab.parity import summary
from model.demo.train import CONFIG as DEMO_CONFIG
from model.variants import variant
from tests.golden import forms, naming
from tests.support.pages import block
from tests.support.records import make_kept
from tests.support.specs import preparer_of, spec_of

README = Path("README.md").read_text()
CODE = {".py", ".js", ".onnx"}


def rows(table: str) -> list[list[str]]:
    """Cells of a Markdown table, its two head lines left out."""
    return [[cell.strip() for cell in line.strip(" |").split(" | ")] for line in table.splitlines()[2:]]


def tracked(*folders: str) -> list[Path]:
    files = subprocess.run(["git", "ls-files", *folders], capture_output=True, text=True, check=True).stdout
    return [Path(line) for line in files.splitlines()]


def settings_table() -> str:
    found = []
    for name, field in Settings.model_fields.items():
        default = field.default.relative_to(Path.cwd()) if name == "bundle" else field.default
        said = "none" if default in ("", ()) else f"`{default}`"
        found.append({"variable": f"`VIT_{name.upper()}`", "default": said, "meaning": field.description})
    return table(found)


def errors_table() -> str:
    kinds = sorted(ServiceError.__subclasses__(), key=lambda kind: (kind.status, kind.kind))
    return table([{"status": kind.status.value, "type": f"`{kind.kind}`", "when": kind.title} for kind in kinds])


def alerts_table() -> str:
    groups = yaml.safe_load(Path("docker/kubernetes/monitoring/alerts.yaml").read_text())["spec"]["groups"]
    return table([
        {"alert": rule["alert"], "for": rule.get("for", "at once"), "because": rule["annotations"]["summary"]}
        for group in groups for rule in group["rules"] if "alert" in rule
    ])  # fmt: skip


def records_table() -> str:
    """What the store has of docs/star.jpg, and of its maps once they are made."""
    found = []
    sizes = {f"ViT-{name}": variant(name) for name in ("S/16", "B/16", "L/16")}
    large = variant("B/16", image_size=(384, 384))
    for name, config in {"demo": DEMO_CONFIG, **sizes, "ViT-B/16 at 384": large}.items():
        layers, heads, tokens = config.depth, config.heads, len(config.prefix) + math.prod(config.grid)
        shapes = {
            "classes": (5,), "logits": (config.num_classes,), "embedding": (config.embedding,),
            "attention": (layers, heads, tokens), "rollout": (tokens,),
            "evidence": (5, layers, tokens), "evidence_heads": (5, layers, heads), "evidence_rest": (5, 2),
            "distance": (layers, heads), "lens": (layers, 5),
        }  # fmt: skip
        maps = Maps.of({key: np.zeros(shape, np.float32) for key, shape in shapes.items()})
        preparer = preparer_of(spec_of(config.image_size), thumbnail_px=THUMBNAIL_PX)
        done = preparer.prepare(Path("docs/star.jpg").read_bytes(), thumbnail=True)
        form = RecordFormat(name=name, shapes=shapes, size=config.image_size)
        kept = len(form.pack_image(make_kept(image=done, classes=range(5))))
        in_kb = {"image, kB": round(kept / 1000), "maps, kB": round(len(form.pack_maps(maps)) / 1000)}
        found.append({"model": name, **in_kb, "images in 256 MiB": 2**28 // kept})
    return table(found)


@pytest.mark.parametrize(
    ("name", "page", "made"),
    [
        ("settings", "docs/settings.md", settings_table),
        ("records", "docs/settings.md", records_table),
        ("errors", "docs/api.md", errors_table),
        ("alerts", "docs/operations.md", alerts_table),
        ("naming", "lab/parity/README.md", naming.table),
        ("forms", "docs/checkpoints.md", forms.table),
    ],
)
def test_a_table_is_that_of_the_code(name, page, made):
    assert block(name, Path(page)).strip() == made()


def test_the_front_page_names_every_setting_and_has_defaults_of_some():
    defaults = {name: default for name, default, _ in rows(settings_table())}
    section = re.search(r"^## Settings\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    assert section
    assert {f"`{name}`" for name in re.findall(r"\bVIT_\w+", section[1])} == defaults.keys()
    for names, given, _ in rows(section[1][section[1].index("|") :].partition("\n\n")[0]):
        expected = " ".join(defaults[name] for name in names.split())
        assert given == ("none" if expected == "`None`" else expected), names


def test_the_api_page_names_every_path_parameter_and_field(client):
    described, page = client.get("/openapi.json").json(), Path("docs/api.md").read_text()
    calls = [call for methods in described["paths"].values() for call in methods.values()]
    schemas = described["components"]["schemas"]
    names = {parameter["name"] for call in calls for parameter in call.get("parameters", [])}
    names |= {name for key in reached(calls, schemas) for name in schemas[key].get("properties", {})}
    paths = {path.replace("/versions/{version}", "") for path in described["paths"]}
    assert [path for path in paths if f"{path}`" not in page and f"{path}?" not in page] == []
    assert {name for name in names if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", page)} == set()


def reached(part: object, schemas: dict[str, object]) -> set[str]:
    """The schemas that a part of the description leads to, but for two that the page leaves to comments in the code."""
    found = set(re.findall(r'/schemas/([^"]+)', json.dumps(part))) - {"PublicManifest", "Judgement"}
    return found.union(*(reached(schemas[name], schemas) for name in found))


def test_the_code_page_names_every_folder():
    """And every file in app/ itself."""
    code = (path for path in tracked("app", "client", "export", "model", "vit_serve") if path.suffix in CODE)
    files = [path for path in code if path.name != "__init__.py"]
    top = {str(path) for path in files if str(path.parent) == "app"}
    folders = {path.parent for path in files} - {Path("app")}
    folders |= {Path(*path.parts[:2]) for path in tracked("tests", "lab") if len(path.parts) > 2}
    listed = [cells[0].strip("`") for cells in rows(block("folders", Path("docs/code.md")))]
    assert sorted(listed) == sorted(top | {f"{folder}/" for folder in folders} | {"docker/"})


def test_files_that_a_page_names_exist():
    text = README + "".join(page.read_text() for page in PAGES)
    named = re.findall(r"`((?:app|client|export|model|tests|lab|docker|vit_serve)/[\w./-]*)`", text)
    assert [name for name in named if not Path(name).exists()] == []


def test_the_example_answer_is_what_the_service_answers(client):
    command, answer = re.search(r"\$ (curl .*?) \|.*?\n(\{.*?\n\})", README, re.DOTALL).groups()
    picture, url = re.search(r"@(\S+) .*?(/classify\S*?)'?$", command).groups()
    expected = json.loads(answer, parse_float=lambda score: pytest.approx(float(score), abs=2e-3))
    found = client.post(url, content=Path(picture).read_bytes()).json()
    for result in expected["results"] + found["results"]:
        assert result.pop("id") in result.pop("attention")
    assert found["model"].pop("digest").startswith(expected["model"].pop("digest").rstrip("."))
    assert found == expected


def test_the_example_receipt_is_that_of_the_service(client):
    answer = client.post("/classify", content=Path("docs/star.jpg").read_bytes()).json()
    link = answer["results"][0]["attention"]
    receipt = block("receipt", Path("docs/explanations.md"))
    heads = receipt.splitlines()[0].strip(" |").split(" | ")[1:]
    for name, *cells in rows(receipt):
        label, _, against = name.partition(" against ")
        query = {"method": "evidence", "format": "json", "label": label} | ({"against": against} if against else {})
        given = client.get(link, params=query).json()["receipt"]
        assert dict(zip(heads, map(float, cells), strict=True)) == pytest.approx(given, abs=0.01), name


def test_the_accuracy_of_the_demo_model():
    figures = json.loads((DEMO_BUNDLE / "manifest.json").read_text())["figures"]
    assert f"{100 * figures['top1_accuracy']:.1f} %" in README


def test_every_make_target_is_documented():
    targets = re.findall(r"^([a-z-]+):.*## ", Path("Makefile").read_text(), re.MULTILINE)
    documented = Path("CONTRIBUTING.md").read_text()
    assert [t for t in targets if not re.search(rf"make {t}\b(?!-)", documented) and t != "help"] == []


def test_no_option_of_a_make_target_has_a_value_of_its_own():
    """`?=` is a default, which the option replaces."""
    makefile = Path("Makefile").read_text()
    options = {name for text in re.findall(r"## (.*)", makefile) for name in re.findall(r"\b([A-Z_]+)=", text)}
    assert options & set(re.findall(r"^([A-Z_]+) :=", makefile, re.MULTILINE)) == set()
    assert {"PEERS", "SECONDS", "BUNDLE"} <= options


def test_the_newest_release_in_the_changelog_and_that_of_the_client_are_the_version():
    assert re.findall(r"^## (\d+\.\d+\.\d+)$", Path("CHANGELOG.md").read_text(), re.MULTILINE)[0] == VERSION
    assert tomllib.loads(Path("client/pyproject.toml").read_text())["project"]["version"] == VERSION


def test_the_front_page_is_short_and_every_page_is_in_the_index():
    assert len(README) <= 11_500
    index = Path("docs/README.md").read_text()
    assert [page.name for page in DOCS if page.name != "README.md" and f"]({page.name})" not in index] == []


@pytest.mark.parametrize("page", [*map(Path, ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *PAGES], ids=str)
def test_links_lead_somewhere(page):
    for target in re.findall(r'(?:\]\(|(?:src|href)=")([^)"\s]+)', page.read_text()):
        if target.startswith("http"):
            continue
        name, _, section = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not section or section in anchors(file), target


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [Path("README.md"), *PAGES], ids=str)
def test_tables_and_figures_are_those_of_the_records(page):
    assert page.read_text() == written(page.read_text())


def test_replicas_are_sized_for_four_fifths_of_what_they_answer():
    assert [replicas(images_s, each=100) for images_s in (1, 80, 81)] == [1, 1, 2]
    gpu = yaml.safe_load(Path("docker/kubernetes/gpu/deployment.yaml").read_text())
    (served,) = gpu["spec"]["template"]["spec"]["containers"]
    assert int(served["resources"]["requests"]["cpu"]) == CORES_BESIDE_GPU


def test_the_tables_of_parity_are_those_of_its_record():
    found = summary.blocks(parity_record.read())
    assert {name: block(name, summary.PAGE) for name in found} == found


def test_every_table_of_a_record_but_the_longest_is_in_one_place():
    pages, expected = [README, *(page.read_text() for page in PAGES)], blocks().keys()
    places = [name for page in pages for _, name, _ in BLOCK.findall(page) if name in expected]
    assert sorted(places) == sorted(expected - {"servers_tries"})


def test_every_benchmark_has_a_record():
    from lab.benchmarks.__main__ import BENCHMARKS  # they import all that they measure
    from lab.study.__main__ import EXPERIMENTS

    studies = {f"study-{name}" for name in EXPERIMENTS}
    assert {*BENCHMARKS, "servers_equal", "servers_tries"} | studies <= record_paths().keys()


def test_every_number_of_a_record_that_has_a_name_is_in_a_page():
    assert {name for page in PAGES for _, name in MARK.findall(page.read_text())} == FIGURES.keys()
