"""From another library's file to an answer: export, serve, classify, look at a map."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from app.bundle import Manifest, load_bundle
from app.inference.scoring import scores
from export.images import reference_pixels
from tests.golden.test_checkpoints import CASES, FOLDER, describe
from tests.support.attention import pool_of
from tests.support.engines import ARRANGEMENTS, engine_of

CLASSIFYING = [
    FOLDER / name
    for name in (
        *("dinov3", "google-hybrid", "huggingface-beit", "huggingface-deit", "huggingface-ijepa"),
        *("timm-perception-encoder", "timm-registers", "timm-remainder"),
    )
]
EMBEDDING = [FOLDER / name for name in ("huggingface-dinov3-v5", "huggingface-siglip")]


def facts(case: Path) -> set[tuple[str, Any]]:
    """Those on which an answer depends. Its family is none: golden/test_checkpoints.py loads every one. Nor is what the
    blocks compute, which unit/export/test_both_engines.py has beside every pooling.
    """
    description = describe(case)
    config = description.config
    return {
        ("pool", config.pool),
        ("prefix", tuple(dict.fromkeys(config.prefix))),
        ("relative bias", config.relative_bias),
        ("stem", config.stem_layers is not None),
        ("remainder", description.preprocessing.remainder != (0, 0)),
        ("head", config.num_classes > 0),
    }


def test_few_networks_show_what_all_show():
    every, few = (set().union(*map(facts, cases)) for cases in (CASES, [*CLASSIFYING, *EMBEDDING]))
    assert every == few


def named(case: Path) -> str:
    return str(case.relative_to(FOLDER))


def check_attention(client: TestClient, link: str, manifest: Manifest, expected: Any) -> None:
    """Rows add up to 1, with what goes to the tokens before the patches, and are those that the library gives."""
    for method in ("class_token", "rollout"):
        numbers = client.get(link, params={"method": method, "format": "json"}).json()
        prefix = sum(numbers[f"{name}_mass"] for name in ("class_token", "distillation", "register"))
        assert numbers["sum"] + prefix == pytest.approx(1, abs=1e-5), numbers
        assert tuple(numbers["grid"]) == manifest.tokens.grid
    prefix, of_library = len(manifest.tokens.prefix), "attentions" in expected
    if manifest.pool in ("map", "map_all"):  # a row is what the pool reads
        of_library = "pool" in expected
    for layer, head in ((0, 1), (1, 0)) if of_library else ():
        row = pool_of(manifest.pool, prefix, expected) @ expected["attentions"][layer, head]
        drawn = client.get(link, params={"layer": layer, "head": head, "format": "json"}).json()
        assert drawn["values"] == pytest.approx(row[prefix:].tolist(), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("case", CLASSIFYING, ids=named)
def test_a_bundle_answers_with_the_numbers_of_its_library(case, golden_bundle, serve, encode):
    expected = np.load(case / "expected.npz")
    bundle = golden_bundle(case)
    manifest = load_bundle(bundle).manifest
    picture = Image.fromarray(expected["picture"])
    with serve(bundle=bundle, max_batch=1) as client:
        assert client.get("/model").json()["provider"] == "OpenVINO"
        (result,) = client.post("/classify?top_k=1000", content=encode(picture)).json()["results"]
        found = {p["index"]: p["score"] for p in result["predictions"]}
        theirs = scores(expected["logits"], manifest.score)
        assert [found[i] for i in range(len(theirs))] == pytest.approx(theirs.tolist(), abs=1e-4)
        assert {"filters", "distance"} < set(manifest.inspect)
        for own in client.get("/model/inspect").json()["pictures"]:
            Image.open(BytesIO(client.get(own["png"]).content)).load()
            assert client.get(own["json"]).json()
        check_attention(client, result["attention"], manifest, expected)
        assert Image.open(BytesIO(client.get(result["attention"]).content)).size == picture.size
        receipt = client.get(result["attention"], params={"method": "evidence", "format": "json"}).json()["receipt"]
        assert receipt["logit"] == pytest.approx(float(expected["logits"].max()), rel=1e-4)
        assert abs(receipt["rounding"]) < 1e-3 * max(map(abs, receipt.values()))


@pytest.mark.parametrize("case", EMBEDDING, ids=named)
def test_a_bundle_without_a_head_gives_the_embedding_of_its_library(case, golden_bundle, serve, encode):
    expected = np.load(case / "expected.npz")
    bundle = golden_bundle(case)
    manifest = load_bundle(bundle).manifest
    picture = Image.fromarray(expected["picture"])
    with serve(bundle=bundle, max_batch=1) as client:
        (result,) = client.post("/embed?attention=true", content=encode(picture)).json()["results"]
        largest = float(np.abs(expected["embedding"]).max())
        assert result["embedding"] == pytest.approx(expected["embedding"].tolist(), abs=1e-4 * largest)
        assert len(result["embedding"]) == manifest.features
        check_attention(client, result["attention"], manifest, expected)


@pytest.mark.parametrize("case", [*CLASSIFYING, *EMBEDDING], ids=named)
def test_every_engine_gives_the_same_numbers(case, golden_bundle):
    """Of parts of a logit, relative to the largest logit or part."""
    bundle = golden_bundle(case)
    images = reference_pixels(load_bundle(bundle).manifest.image, 3)
    *others, theirs = (engine_of(bundle, kind).run("explain", images) for kind in ARRANGEMENTS)
    for ours in others:
        assert ours.keys() == theirs.keys()
        if "classes" in ours:
            assert (ours["classes"] == theirs["classes"]).all()
        for name in ours.keys() - {"classes"}:
            allowed = 1e-5 * max(1.0, float(np.abs(theirs[name]).max()))
            assert ours[name] == pytest.approx(theirs[name], rel=0, abs=allowed)
