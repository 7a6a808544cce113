"""Steps as timm's train.py takes them: its task, optimiser, clipping and schedule."""

import sys
from contextlib import nullcontext

import torch

from tests.benchmarks.training.pace import CLASSES, CLIP, RATE, STEPS, WEIGHT_DECAY, Pace, device
from tests.golden.torchvision_operators import declare

NAMES = {"Ti/16": "vit_tiny_patch16_224", "S/16": "vit_small_patch16_224"}


def main() -> None:
    operators = declare()  # kept while timm is in use
    import timm
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler
    from timm.task import ClassificationTask
    from timm.utils import dispatch_clip_grad

    network = timm.create_model(NAMES[sys.argv[1]], num_classes=CLASSES).to(device()).train()
    task = ClassificationTask(network, device=device(), verbose=False)
    adam = create_optimizer_v2(network, opt="adamw", lr=RATE, weight_decay=WEIGHT_DECAY)
    schedule = CosineLRScheduler(adam, t_initial=STEPS, warmup_t=100, t_in_epochs=False)
    mixed = torch.autocast("cuda", dtype=torch.bfloat16) if device().type == "cuda" else nullcontext()
    pace = Pace()
    images, classes = pace.samples()
    for step in range(STEPS):
        pace.begin()
        with mixed:
            loss = task(images, classes)["loss"]
        loss.backward()
        dispatch_clip_grad(network.parameters(), value=CLIP)
        adam.step()
        adam.zero_grad()
        schedule.step_update(num_updates=step + 1)
    del operators


if __name__ == "__main__":
    main()
