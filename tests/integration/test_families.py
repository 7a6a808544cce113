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
from tests.golden.test_checkpoints import CASES, FOLDER, describe
from tests.support.attention import pool_of

CLASSIFYING = [FOLDER / name for name in ("huggingface-deit", "timm-remainder")]
EMBEDDING = [FOLDER / "huggingface-dinov3-v5"]


def facts(case: Path) -> set[tuple[str, Any]]:
    """Those that the service reads. Its family is none: golden/test_checkpoints.py loads every one. Nor is what the
    network computes: unit/export/test_both_engines.py has every switch beside every pooling.
    """
    description = describe(case)
    config = description.config
    return {
        *(("token", name) for name in config.prefix),
        ("pools by attention", config.pools_by_attention),
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
    with serve(engine="auto", bundle=bundle, max_batch=1) as client:
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
    with serve(engine="auto", bundle=bundle, max_batch=1) as client:
        (result,) = client.post("/embed?attention=true", content=encode(picture)).json()["results"]
        largest = float(np.abs(expected["embedding"]).max())
        assert result["embedding"] == pytest.approx(expected["embedding"].tolist(), abs=1e-4 * largest)
        assert len(result["embedding"]) == manifest.features
        check_attention(client, result["attention"], manifest, expected)
