"""How often each served map finds the defect of a textile that is named local, over draws of images and probes.

All probes are rows of one head, so one network runs for all of them.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor, nn

from app.bundle import Manifest, load_bundle
from app.images.preprocess import preprocess
from app.inference.engine import Asked, Engine, Pixels
from app.maps.attention import choose
from app.maps.choice import Choice
from app.maps.faithfulness import ranked
from app.maps.occlusion import filled, occluded
from app.maps.record import Maps
from export.bundle import write_bundle
from export.judge.masks import Patches, patches_on
from export.judge.table import HOTTEST
from lab.benchmarks.bundle_engine import open_engine
from lab.benchmarks.record import Rows
from lab.real.data import Data
from lab.real.defect import defect
from lab.real.frozen import read_files
from lab.real.textiles import LABELS
from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import Checkpoint
from model.fit.groups import near_copies
from model.fit.least_squares import least_squares
from model.fit.network import with_new_head
from model.fit.probe import ProbeRecipe, probe_temperature

DRAWS = 5
LEARNED = 100  # images of each label, of 180
JUDGED = 16  # images with a defect that are named local, of each draw
ELSEWHERE = 9  # places to which the defect's patches are moved, to cover as many there
WHERE = "where the answer depends on it, %"
GLOBAL, LOCAL, NOMINAL = range(len(LABELS))
MAPS = {
    "class token (last layer)": Choice(method="class_token"),
    "class token (mean of layers)": Choice(method="class_token", layer="mean"),
    "rollout": Choice(method="rollout"),
    "evidence": Choice(method="evidence"),
    "evidence against nominal": Choice(method="evidence", against="nominal"),
    "evidence against nominal, last layer but one": Choice(method="evidence", against="nominal", layer="-2"),
    "positive evidence": Choice(method="positive_evidence"),
    "positive evidence against nominal": Choice(method="positive_evidence", against="nominal"),
}


class Probe(NamedTuple):
    weight: Tensor  # (3, F), divided by the temperature, as the bias (3,)
    bias: Tensor
    named: list[Path]  # new images with a defect that are named local
    right: float  # share of the new images


def measure(data: Data) -> Rows:
    files = [*data.textiles["train"], *data.textiles["test"]]
    checkpoint = load_checkpoint(data.network)
    return rows(checkpoint, files, read_files("textiles", checkpoint, files).features)


def rows(checkpoint: Checkpoint, files: list[Path], features: Tensor) -> Rows:
    """`features` (files, F) are what a probe reads."""
    probes = [_probe(files, features, draw) for draw in range(DRAWS)]
    found: dict[str, list[list[bool]]] = {name: [] for name in MAPS}
    depends: list[list[bool]] = []
    with tempfile.TemporaryDirectory() as place:
        bundle = Path(place, "bundle")
        write_bundle(_with_heads(checkpoint, probes), bundle, replace=False)
        engine, manifest = open_engine(bundle), load_bundle(bundle).manifest
        for draw, probe in enumerate(probes):
            for of_map in (*found.values(), depends):
                of_map.append([])
            for file in probe.named:
                image = Image.open(file).convert("RGB")
                on_defect = patches_on(preprocess(defect(image).convert("RGB"), manifest.image)[0], manifest)
                if on_defect is None or len(depends[-1]) == JUDGED:
                    continue
                pixels = preprocess(image, manifest.image)[0]
                depends[-1].append(_depends(engine, pixels, on_defect, draw, manifest))
                for name, hit in _found(engine, pixels, on_defect, draw, manifest).items():
                    found[name][-1].append(hit)
    return [
        *({"map": name, **_cells(of_map, depends)} for name, of_map in found.items()),
        {"map": "the answer depends on the defect", **_cells(depends, depends)},
        {"map": "right answers of the probe", **_shares([[probe.right] for probe in probes]), WHERE: ""},
    ]


def _cells(of_draws: list[list[bool]], depends: list[list[bool]]) -> dict[str, str | float]:
    hits, where = np.concatenate(of_draws), np.concatenate(depends)
    return {**_shares(of_draws), WHERE: round(100 * float(hits[where].mean()), 1)}


def _shares(of_draws: list[list[bool]] | list[list[float]]) -> dict[str, str | float]:
    shares = [100 * float(np.mean(of_draw)) for of_draw in of_draws]
    each = ", ".join(f"{share:.0f}" for share in shares)
    return {"in each draw, %": each, "mean, %": round(float(np.mean(shares)), 1)}


def _probe(files: list[Path], features: Tensor, draw: int) -> Probe:
    classes = torch.tensor([LABELS.index(file.parent.name) for file in files])
    order = torch.randperm(len(files), generator=torch.Generator().manual_seed(draw))
    of_labels = [order[classes[order] == kind] for kind in range(len(LABELS))]
    learned = torch.cat([of_label[:LEARNED] for of_label in of_labels])
    new = torch.cat([of_label[LEARNED:] for of_label in of_labels])
    known, right = features[learned], classes[learned]
    head = least_squares(known, right, count=len(LABELS), groups=near_copies(known, right))
    hardness = probe_temperature(head.left_out, right)
    answers = (features[new].double() @ head.weight.T + head.bias).argmax(1)
    named = new[(answers == LOCAL) & (classes[new] == LOCAL)]
    return Probe(
        weight=head.weight / hardness,
        bias=head.bias / hardness,
        named=[files[row] for row in named.tolist()],
        right=(answers == classes[new]).double().mean().item(),
    )


def _with_heads(checkpoint: Checkpoint, probes: list[Probe]) -> Checkpoint:
    """Its head has the labels of every probe, one probe after the other."""
    labels = tuple(f"{label} {draw}" for draw in range(len(probes)) for label in LABELS)
    size = checkpoint.preprocessing.size
    network = with_new_head(checkpoint.model, classes=len(labels), image_size=size, read=ProbeRecipe().read)
    assert isinstance(network.head, nn.Linear)
    with torch.no_grad():
        network.head.weight.copy_(torch.cat([probe.weight for probe in probes]))
        network.head.bias.copy_(torch.cat([probe.bias for probe in probes]))
    return replace(checkpoint, model=network, config=network.config, labels=labels)


def _found(engine: Engine, pixels: Pixels, on_defect: Patches, draw: int, manifest: Manifest) -> dict[str, bool]:
    """Whether one of the hottest patches of each map is on the defect."""
    classes = [len(LABELS) * draw + kind for kind in (LOCAL, NOMINAL)]
    outputs = engine.run("explain", [pixels], [Asked(classes)])
    maps = Maps.of({name: of_image[0] for name, of_image in outputs.items()})
    hits = {}
    for name, choice in MAPS.items():
        of_label = {"label": str(classes[0])} if choice.of_label else {}
        against = {"against": str(classes[1])} if choice.against else {}
        values = choose(maps, manifest, choice.model_copy(update=of_label | against)).values
        hits[name] = bool(on_defect[ranked(values)[:HOTTEST]].any())
    return hits


def _depends(engine: Engine, pixels: Pixels, on_defect: Patches, draw: int, manifest: Manifest) -> bool:
    """Whether the logit of local less that of nominal falls further without the defect than without as many patches in
    any of ELSEWHERE other places, under a blur.
    """
    rows, columns = manifest.tokens.grid
    here, rng = on_defect.reshape(rows, columns), np.random.default_rng(draw)
    moved: list[npt.NDArray[np.bool_]] = []
    while len(moved) < ELSEWHERE:
        there = np.roll(here, (rng.integers(rows), rng.integers(columns)), (0, 1))
        if not (there & here).any():
            moved.append(there.ravel())
    covered = np.stack([on_defect, *moved])
    shown = occluded(pixels, filled(pixels, "blur", patch=manifest.tokens.patch), covered, patch=manifest.tokens.patch)
    logits = engine.run("classify", shown)["logits"][:, len(LABELS) * draw :]
    left = logits[:, LOCAL] - logits[:, NOMINAL]
    return bool(left[0] < left[1:].min())
