"""Learns a network from nothing with labels (paper, section 4.1 and Table 3)."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from model.config import ViTConfig
from model.fit.augment import FROM_NOTHING, Augmentation
from model.fit.batches import Batches
from model.fit.classification import Classification
from model.fit.fitted import Fitted
from model.fit.loop import Course, learn
from model.fit.network import best_device, initialised
from model.fit.optimiser import linear, optimiser
from model.fit.samples import Samples, check_sizes, count_classes
from model.fit.snapshot import Snapshot, identity
from model.preprocessing import Preprocessing


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe:
    """Everything that the weights depend on, beside the network and the images."""

    seed: int = 0
    rate: float = 1e-3
    epochs: float = 100.0
    batch: int = 128
    warm_up_share: float = 0.1  # of the steps
    weight_decay: float = 0.1
    dropout: float = 0.1
    hidden_head: bool = True  # an MLP with one hidden layer as the head, which fine-tuning removes (section 3.1)
    clip: float = 1.0
    augmentation: Augmentation = FROM_NOTHING


def pretrain(
    config: ViTConfig,
    preprocessing: Preprocessing,
    train: Samples,
    held_out: Samples | None,
    recipe: PretrainRecipe,
    *,
    work: Path | None = None,
) -> Fitted:
    """A network of `config`, whose head is for the classes of `train`, after the last step.

    Held-out images have the size that `preprocessing` gives; those to learn from may be larger, so that crops of them
    are sharp. `held_out`, `work` and errors are those of `finetune`.
    """
    classes = count_classes(train)
    check_sizes(preprocessing, held_out)
    hidden = config.width if recipe.hidden_head else None
    config = replace(
        config, num_classes=classes, representation_size=hidden, representation="tanh", distillation_head=False
    )
    network = initialised(config, recipe.seed)
    known = identity("pretrain", asdict(recipe), network, preprocessing, train, held_out)
    snapshot = Snapshot(work, "pre-training", identity=known)
    network.to(best_device())
    crops, size = recipe.augmentation, preprocessing.size
    batches = Batches(samples=train, size=size, batch=recipe.batch, seed=recipe.seed, augmentation=crops)
    course = Course.over(recipe.epochs, batches, linear, warm_up_share=recipe.warm_up_share, clip=recipe.clip)
    objective = Classification(network, preprocessing, batches, held_out, dropout_share=recipe.dropout)
    adam = optimiser(network, rate=recipe.rate, weight_decay=recipe.weight_decay)
    history = learn(objective, course, [adam], snapshot=snapshot)
    return Fitted(model=network.cpu(), history=history, recipe={"method": "pretrain", **asdict(recipe)})
