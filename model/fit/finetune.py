"""Learns a person's classes by changing every weight of a pre-trained network (paper, section 3.2, appendix B.1.1)."""

import copy
from dataclasses import asdict, dataclass
from pathlib import Path

from model.fit.augment import Augmentation
from model.fit.batches import Batches
from model.fit.classification import Classification
from model.fit.device import best_device
from model.fit.fitted import Fitted, figures_of
from model.fit.loop import Course, Diverged, Learned, learn
from model.fit.measure import Measured
from model.fit.network import Read, with_new_head
from model.fit.optimiser import Kind, optimiser
from model.fit.samples import Samples, check_sizes, count_classes
from model.fit.schedule import cosine
from model.fit.snapshot import Snapshot, identity
from model.preprocessing import Preprocessing
from model.vit import VisionTransformer

EPOCHS = 12.0
LEAST_STEPS = 250  # few images are seen more often: the paper's shortest runs have 500 larger steps (Table 4)


@dataclass(frozen=True, kw_only=True)
class FinetuneRecipe:
    """Everything that the weights depend on, beside the network and the images."""

    seed: int = 0
    read: Read = "own"  # what the new head reads; see with_new_head
    optimiser: Kind = "sgd"
    rates: tuple[float, ...] = (0.01, 0.03, 0.1)  # the best of a short run each is taken; one is not searched
    search_share: float = 0.1  # of the steps, for each rate
    epochs: float | None = None  # None: EPOCHS, or as many as make LEAST_STEPS
    batch: int = 64
    warm_up_share: float = 0.05  # of the steps
    weight_decay: float = 0.0
    layer_decay: float = 1.0  # of the learning rate, from each layer to the one below
    clip: float = 1.0
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
    """The network with a new head, of the epoch that was most often right on the held-out images.

    Held-out images have the size that `preprocessing` gives, for which positions are interpolated; those to learn from
    may be larger, so that crops of them are sharp. With the folder `work` a run that was interrupted goes on where it
    was; the caller removes the folder when what was learned is safe. Without held-out images the first rate is taken,
    and the last weights. Raises ValueError for classes or sizes that do not fit, and for the folder of another run.
    """
    classes = count_classes(train, held_out)
    check_sizes(preprocessing, held_out)
    network = with_new_head(model, classes=classes, image_size=preprocessing.size, read=recipe.read)
    runs = _Runs(network, preprocessing, train, held_out, recipe, work=work)
    tried = runs.search() if held_out is not None and len(recipe.rates) > 1 else {}
    rate = max(tried, key=lambda rate: tried[rate].rank) if tried else recipe.rates[0]
    learned = runs.learned(rate)
    chosen = {"epochs": runs.epochs, "rate": rate, "tried": {str(rate): asdict(found) for rate, found in tried.items()}}
    return Fitted(
        model=learned.network.cpu(),
        history=learned.history,
        figures=figures_of(learned.best, train, held_out),
        recipe={"method": "finetune", **asdict(recipe), **chosen},
    )


class _Runs:
    """Runs that start from the same weights, with different learning rates."""

    def __init__(
        self,
        network: VisionTransformer,
        preprocessing: Preprocessing,
        train: Samples,
        held_out: Samples | None,
        recipe: FinetuneRecipe,
        *,
        work: Path | None,
    ) -> None:
        self._network, self._preprocessing, self._recipe = network, preprocessing, recipe
        self._held_out, self._work = held_out, work
        self._batches = Batches(
            samples=train,
            size=preprocessing.size,
            batch=recipe.batch,
            seed=recipe.seed,
            augmentation=recipe.augmentation,
        )
        self._identity = identity("finetune", asdict(recipe), network, preprocessing, train, held_out)

    @property
    def epochs(self) -> float:
        """Of the whole run."""
        if self._recipe.epochs is not None:
            return self._recipe.epochs
        return max(EPOCHS, LEAST_STEPS / self._batches.an_epoch)

    def search(self) -> dict[float, Measured]:
        """The accuracy after a short run, by learning rate. Raises Diverged if every run did."""
        found = {rate: self._tried(rate) for rate in self._recipe.rates}
        finite = {rate: measured for rate, measured in found.items() if measured is not None}
        if not finite:
            raise Diverged(f"every learning rate is too large: {', '.join(map(str, self._recipe.rates))}")
        return finite

    def learned(self, rate: float) -> Learned:
        """The whole run."""
        return self._run(rate, share=1.0, title="fine-tuning", snapshot=self._snapshot("fine-tuning"))

    def _tried(self, rate: float) -> Measured | None:
        """Of one short run, or None if it diverged. Its snapshot becomes its result, so that it is not run again."""
        snapshot = self._snapshot(f"rate-{rate}")
        stored = None if snapshot is None else snapshot.load()
        if stored is not None and "tried" in stored:
            return None if stored["tried"] is None else Measured(**stored["tried"])
        try:
            best = self._run(rate, share=self._recipe.search_share, title=f"rate {rate}", snapshot=snapshot).best
        except Diverged:
            best = None
        if snapshot is not None:
            snapshot.save({"tried": None if best is None else asdict(best)})
        return best

    def _run(self, rate: float, *, share: float, title: str, snapshot: Snapshot | None) -> Learned:
        recipe, batches = self._recipe, self._batches
        network = copy.deepcopy(self._network).to(best_device())
        objective = Classification(network, self._preprocessing, batches, self._held_out)
        epochs = share * self.epochs
        course = Course.over(epochs, batches, cosine, warm_up_share=recipe.warm_up_share, clip=recipe.clip)
        chosen = optimiser(
            recipe.optimiser,
            network,
            rate=rate,
            weight_decay=recipe.weight_decay,
            layer_decay=recipe.layer_decay,
        )
        return learn(network, objective, course, [chosen], title=title, snapshot=snapshot)

    def _snapshot(self, name: str) -> Snapshot | None:
        return None if self._work is None else Snapshot(self._work / f"{name}.pt", identity=self._identity)
