"""Labels without meaning: what is reported as accuracy has to be chance, and its interval has to hold it."""

from statistics import fmean

import torch

from export.fit.report.judged import interval
from lab.benchmarks.record import Row, Rows
from model.fit.finetune import FinetuneRecipe, finetune
from model.fit.measure import measure as judge
from model.fit.network import initialised
from model.fit.pretrain import PretrainRecipe, pretrain
from model.fit.probe import ProbeRecipe, probe
from model.fit.samples import Samples
from model.variants import variant
from tests.support.samples import PREPROCESSING, SIZE

RUNS = 200  # of 30 judging images each: one standard error of the mean is 0.65 points
TRAIN, JUDGING = 60, 30  # images, half of them of each of two classes
CHANCE = 0.5
CONFIG = variant("mu/8", image_size=SIZE, num_classes=2)


def measure() -> Rows:
    return [_row(method) for method in ("probe", "finetune", "pretrain")]


def _row(method: str) -> Row:
    reported = [_accuracy(method, seed) for seed in range(RUNS)]
    ends = [interval(round(share * JUDGING), JUDGING) for share in reported]
    held = sum(low <= CHANCE <= high for low, high in ends)
    return {
        "method": method,
        "runs": RUNS,
        "judging images": JUDGING,
        "mean reported accuracy, %": f"{100 * fmean(reported):.1f}",
        "chance, %": f"{100 * CHANCE:.1f}",
        "intervals that hold chance, %": f"{100 * held / RUNS:.1f}",
    }


def _accuracy(method: str, seed: int) -> float:
    train, judging = _noise(TRAIN, 2 * seed), _noise(JUDGING, 2 * seed + 1)
    network = initialised(CONFIG, seed)
    if method == "pretrain":
        fitted = pretrain(CONFIG, PREPROCESSING, train, judging, PretrainRecipe(seed=seed, epochs=12))
    elif method == "probe":
        fitted = probe(network, PREPROCESSING, train, ProbeRecipe())
    else:
        fitted = finetune(network, PREPROCESSING, train, judging, FinetuneRecipe(seed=seed, epochs=12))
    return judge(fitted.model, judging, PREPROCESSING).accuracy


def _noise(count: int, seed: int) -> Samples:
    chance = torch.Generator().manual_seed(seed)
    pixels = torch.randint(256, (count, *SIZE, 3), dtype=torch.uint8, generator=chance)
    return Samples(pixels=pixels, classes=torch.arange(count) % 2)
