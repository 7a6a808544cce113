"""Learns new classes by changing every weight of a pre-trained network, from the probe's head on.

Linear probing, then fine-tuning: with a head of zeros the first steps would spoil what the network knows (Kumar et al.
2022, arXiv 2202.10054). The paper begins with zeros, and learns by SGD (section 3.2, appendix B.1.1).
"""

import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from model.fit.augment import Augmentation
from model.fit.batches import Batches
from model.fit.choosing import divide, worse
from model.fit.classification import Classification
from model.fit.fitted import Fitted, Point
from model.fit.loop import Course, Diverged, learn
from model.fit.measure import Measured, logits, measured
from model.fit.network import Read, best_device, with_new_head
from model.fit.optimiser import cosine, optimiser
from model.fit.probe import features, fit_head
from model.fit.samples import Samples, check_sizes, count_classes
from model.fit.snapshot import Snapshot, identity
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

EPOCHS = 10.0
LEAST_STEPS = 500  # few images are seen more often; the paper's shortest runs are as long (Table 4)
CHOOSING_STEPS = 200  # at most, in a run that chooses a rate: with fewer, even good ones lag behind the probe
WARM_UP = 0.1  # of the steps
CLIP = 1.0
PROBE = "probe"  # beside the rates that were tried


@dataclass(frozen=True, kw_only=True)
class FinetuneRecipe:
    """Everything that the weights depend on, beside the network and the images."""

    seed: int = 0
    read: Read = "cls_mean"  # what the head reads; see with_new_head
    rates: tuple[float, ...] = (2e-4, 5e-5, 1e-5)  # of Adam; the first that harms nothing, or a single one
    epochs: float | None = None  # None: EPOCHS, or as many as make LEAST_STEPS
    batch: int = 16
    augmentation: Augmentation = Augmentation()  # noqa: RUF009 (it is frozen)


def finetune(
    model: VisionTransformer,
    preprocessing: Preprocessing,
    train: Samples,
    held_out: Samples | None,
    recipe: FinetuneRecipe,
    *,
    work: Path | None = None,
) -> Fitted:
    """The network with a new head after the last step, or the probe where fine-tuning harms.

    A fifth of `train` chooses: a probe and a short run of each rate in turn learn from the rest. The whole run learns
    from all of `train` at the first rate that is not worse than the probe; if there is none, the probe is taken. The
    held-out images are measured for the curves and choose nothing. All images have the size that `preprocessing` gives,
    for which positions are interpolated. With the folder `work` a run that was interrupted goes on where it was; the
    caller removes the folder when what was learned is safe. Raises ValueError for classes or sizes that do not fit, and
    for the folder of another run, and Diverged if a rate is too large.
    """
    classes = count_classes(train)
    check_sizes(preprocessing, train, held_out)
    network = with_new_head(model, classes=classes, image_size=preprocessing.size, read=recipe.read)
    runs = _Runs(network.to(best_device()), preprocessing, train, held_out, recipe, work)
    choice = runs.choice()
    learned, left_out = runs.probed(None)
    history: tuple[Point, ...] = ()
    if choice.rate is not None:
        history = runs.run(learned, None, rate=choice.rate, flip=choice.flip, epochs=runs.epochs, name="fine-tuning")
    taken = replace(recipe, epochs=runs.epochs, augmentation=replace(recipe.augmentation, flip=choice.flip))
    tried = {name: asdict(result) for name, result in choice.tried.items()}
    return Fitted(
        model=learned.cpu(),
        history=history,
        left_out=left_out,
        features=runs.features if choice.rate is None else None,
        recipe={"method": "finetune", **asdict(taken), "rate": choice.rate, "tried": tried},
    )


class _Choice(NamedTuple):
    rate: float | None  # None: the probe is taken
    flip: bool
    tried: dict[str, Measured]  # the probe, and the short runs up to that rate; empty if nothing was to be chosen


@dataclass
class _Runs:
    """Runs that start from a probe of what they learn from."""

    network: VisionTransformer
    preprocessing: Preprocessing
    train: Samples
    held_out: Samples | None
    recipe: FinetuneRecipe
    work: Path | None

    def __post_init__(self) -> None:
        read = self.train.features
        self.features = features(self.network, self.train, self.preprocessing) if read is None else read
        recipe = asdict(self.recipe)
        self.identity = identity("finetune", recipe, self.network, self.preprocessing, self.train, self.held_out)
        least = max(EPOCHS, LEAST_STEPS * self.recipe.batch / len(self.train))
        self.epochs = least if self.recipe.epochs is None else self.recipe.epochs  # of the whole run

    def choice(self) -> _Choice:
        """The choice of rate and mirroring, by some of the images. If every class has one image, the last rate is
        taken, without mirroring.
        """
        rates, flip = self.recipe.rates, self.recipe.augmentation.flip
        learning, choosing = divide(self.train.classes, self.recipe.seed, self.train.groups)
        if not len(choosing) or (len(rates) == 1 and flip is not None):
            return _Choice(rates[-1], bool(flip), {})
        start, _ = self.probed(learning)
        others = Samples(pixels=self.train.pixels[choosing], classes=self.train.classes[choosing])
        probed = logits(start, others, self.preprocessing)
        if flip is None:
            mirrored = replace(others, pixels=others.pixels.flip(2))
            flip = not worse(logits(start, mirrored, self.preprocessing), probed, others.classes)
        if len(rates) == 1:
            return _Choice(rates[0], flip, {})
        tried = {PROBE: measured(probed, others.classes)}
        for number, rate in enumerate(rates if tried[PROBE].accuracy < 1 else (), 1):
            title = f"trying rate {rate:g} ({number} of at most {len(rates)})"
            answers = self._short(rate, start, learning, others, flip=flip, title=title)
            if answers.isfinite().all():
                tried[str(rate)] = measured(answers, others.classes)
                if not worse(answers, probed, others.classes):
                    return _Choice(rate, flip, tried)
        return _Choice(None, flip, tried)

    def _short(
        self, rate: float, start: VisionTransformer, rows: Tensor, others: Samples, *, flip: bool, title: str
    ) -> Tensor:
        """The logits that a short run from `rows` gives for others, NaN if it diverged.

        It is not run again: its snapshot becomes its result.
        """
        name = f"rate-{rate}"
        snapshot = Snapshot(self.work, name, identity=self.identity)
        stored = snapshot.load()
        if stored is not None and "logits" in stored:
            return stored["logits"]
        network = copy.deepcopy(start)
        epochs = min(self.epochs, CHOOSING_STEPS * self.recipe.batch / len(rows))
        try:
            self.run(network, rows, rate=rate, flip=flip, epochs=epochs, name=name, title=title)
            answers = logits(network, others, self.preprocessing)
        except Diverged:
            answers = torch.full((len(others), network.config.num_classes), torch.nan)
        snapshot.save({"logits": answers})
        return answers

    def probed(self, rows: Tensor | None) -> tuple[VisionTransformer, Tensor]:
        """The network with the head that these images teach, or all, and the logits of each without it."""
        network, chosen = copy.deepcopy(self.network), slice(None) if rows is None else rows
        groups = None if self.train.groups is None else self.train.groups[chosen]
        head, hardness = fit_head(network, self.features[chosen], self.train.classes[chosen], groups)
        return network, head.left_out / hardness

    def run(
        self,
        network: VisionTransformer,
        rows: Tensor | None,
        *,
        rate: float,
        flip: bool,
        epochs: float,
        name: str,
        title: str = "",
    ) -> tuple[Point, ...]:
        """Learn from some of the images, or from all, with curves of the held-out images. `name` is the snapshot's."""
        recipe, held_out = self.recipe, self.held_out if rows is None else None
        batches = Batches(
            samples=self.train,
            size=self.preprocessing.size,
            batch=recipe.batch,
            seed=recipe.seed,
            augmentation=replace(recipe.augmentation, flip=flip),
            among=rows,
        )
        objective = Classification(network, self.preprocessing, batches, held_out)
        course = Course.over(epochs, batches, cosine, warm_up_share=WARM_UP, clip=CLIP)
        snapshot = Snapshot(self.work, name, identity=self.identity)
        return learn(objective, course, [optimiser(network, rate=rate)], snapshot=snapshot, title=title)
