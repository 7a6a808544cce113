"""From another library's file to an answer: export, serve, classify, look at a map."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from app.bundle import load_bundle
from app.inference.scoring import scores
from export.images import reference_pixels
from tests.golden.test_checkpoints import CASES, FOLDER, describe
from tests.support.attention import pool_of
from tests.support.engines import ARRANGEMENTS, engine_of


def facts(case: Path) -> set[tuple[str, Any]]:
    description = describe(case)
    config = description.config
    return {
        ("family", description.family),
        ("pool", config.pool),
        ("prefix", tuple(dict.fromkeys(config.prefix))),
        ("norm", config.norm),
        ("gated", config.gated_mlp),
        ("positions", (config.positions, config.relative_bias)),
        ("rope", config.rope and config.rope.kind),
        ("stem", config.stem_layers is not None),
        ("remainder", description.preprocessing.remainder != (0, 0)),
    }


def unlike_each_other(*, classify: bool) -> list[Path]:
    """Few cases, with a head or without, that between them show every family, pool, kind of tokens before the
    patches, and way of adding positions and of cutting the image into patches.
    """
    configs = {case: describe(case).config for case in reversed(CASES)}
    kept = {case: facts(case) for case, config in configs.items() if bool(config.num_classes) == classify}
    for case in sorted(kept, key=lambda case: configs[case].depth, reverse=True):  # a deep one takes longest
        others = (of_other for other, of_other in kept.items() if other != case)
        if kept[case] <= set().union(*others):
            del kept[case]
    return sorted(kept)


CLASSIFYING, EMBEDDING = unlike_each_other(classify=True), unlike_each_other(classify=False)


def named(case: Path) -> str:
    return str(case.relative_to(FOLDER))


def check_attention(client: TestClient, link: str, grid: tuple[int, int]) -> None:
    """Rows add up to 1, with what goes to the tokens before the patches."""
    for method in ("class_token", "rollout"):
        numbers = client.get(link, params={"method": method, "format": "json"}).json()
        prefix = sum(numbers[f"{name}_mass"] for name in ("class_token", "distillation", "register"))
        assert numbers["sum"] + prefix == pytest.approx(1, abs=1e-5), numbers
        assert tuple(numbers["grid"]) == grid


@pytest.mark.parametrize("case", CLASSIFYING, ids=named)
def test_a_bundle_of_every_family_answers(case, golden_bundle, serve, encode):
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
        check_attention(client, result["attention"], manifest.tokens.grid)
        assert Image.open(BytesIO(client.get(result["attention"]).content)).size == picture.size
        for layer, head in ((0, 1), (1, 0)) if "attentions" in expected else ():
            row = pool_of(manifest.pool, len(manifest.tokens.prefix), expected) @ expected["attentions"][layer, head]
            drawn = client.get(result["attention"], params={"layer": layer, "head": head, "format": "json"}).json()
            assert drawn["values"] == pytest.approx(row[len(manifest.tokens.prefix) :].tolist(), rel=2e-3, abs=1e-6)
        receipt = client.get(result["attention"], params={"method": "evidence", "format": "json"}).json()["receipt"]
        assert receipt["logit"] == pytest.approx(float(expected["logits"].max()), rel=1e-4)
        assert abs(receipt["rounding"]) < 1e-3 * max(map(abs, receipt.values()))


@pytest.mark.parametrize("case", EMBEDDING, ids=named)
def test_a_bundle_without_a_head_gives_the_familys_embedding(case, golden_bundle, serve, encode):
    expected = np.load(case / "expected.npz")
    bundle = golden_bundle(case)
    manifest = load_bundle(bundle).manifest
    picture = Image.fromarray(expected["picture"])
    with serve(bundle=bundle, max_batch=1) as client:
        (result,) = client.post("/embed?attention=true", content=encode(picture)).json()["results"]
        largest = float(np.abs(expected["embedding"]).max())
        assert result["embedding"] == pytest.approx(expected["embedding"].tolist(), abs=1e-4 * largest)
        assert len(result["embedding"]) == manifest.features
        check_attention(client, result["attention"], manifest.tokens.grid)


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
