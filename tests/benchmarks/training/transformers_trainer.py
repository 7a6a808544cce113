"""Steps of transformers' Trainer."""

import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from typing import Any

from torch.utils.data import IterableDataset

from tests.benchmarks.training.pace import CLASSES, CLIP, RATE, STEPS, WEIGHT_DECAY, Pace, device
from tests.golden.torchvision_operators import declare

OPERATORS = declare()  # transformers imports torchvision

from transformers import (  # noqa: E402
    Trainer,
    TrainerCallback,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

SIZES: dict[str, dict[str, Any]] = {
    "Ti/16": {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768},
    "S/16": {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
}


class Numbers(IterableDataset[int]):
    """Nothing but an item for each image of a batch: the collator has the batch ready."""

    def __iter__(self) -> Iterator[int]:
        return count()


class Paced(TrainerCallback):
    def __init__(self, pace: Pace) -> None:
        self._pace = pace

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._pace.begin()


def main() -> None:
    network = ViTForImageClassification(ViTConfig(id2label={i: str(i) for i in range(CLASSES)}, **SIZES[sys.argv[1]]))
    pace = Pace()
    images, classes = pace.samples()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=pace.batch,
            max_steps=STEPS,
            learning_rate=RATE,
            weight_decay=WEIGHT_DECAY,
            max_grad_norm=CLIP,
            lr_scheduler_type="cosine",
            warmup_steps=100,
            bf16=device().type == "cuda",
            use_cpu=device().type == "cpu",
            dataloader_pin_memory=False,
            remove_unused_columns=False,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=network,
            args=arguments,
            train_dataset=Numbers(),
            data_collator=lambda _: {"pixel_values": images, "labels": classes},
            callbacks=[Paced(pace)],
        )
        trainer.train()


if __name__ == "__main__":
    main()
