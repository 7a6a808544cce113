"""The loop that every method of learning by steps runs: gradients, optimisers, curves, snapshots."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from model.fit.batches import Batches
from model.fit.fitted import Point
from model.fit.measure import Measured
from model.fit.optimiser import Schedule
from model.fit.snapshot import Snapshot
from model.progress import steps
from model.vit import VisionTransformer

POINTS = 100  # of the curves, at least, in runs that long


class Diverged(ValueError):
    """The loss is no longer a finite number; the message says what helps."""


class Objective(Protocol):
    """The loss to minimise. `loss` depends on its step and on the weights alone."""

    @property
    def network(self) -> VisionTransformer:
        """What learns."""

    def loss(self, step: int) -> Tensor:
        """The mean loss of the batch of this step."""

    def measure(self) -> Measured | None:
        """On held-out images, for the curves, or None if there are none. It chooses nothing."""


@dataclass(frozen=True, kw_only=True)
class Course:
    steps: int
    steps_per_epoch: int
    schedule: Schedule
    warm_up: int  # steps
    clip: float = 1.0  # largest norm of the network's gradient (paper, Tables 3 and 4)

    @classmethod
    def over(cls, epochs: float, batches: Batches, schedule: Schedule, *, warm_up_share: float, clip: float) -> Self:
        """So many epochs, of a step at least."""
        steps = max(1, round(epochs * batches.steps_per_epoch))
        warm_up, in_epoch = round(warm_up_share * steps), batches.steps_per_epoch
        return cls(steps=steps, steps_per_epoch=in_epoch, schedule=schedule, warm_up=warm_up, clip=clip)


@dataclass
class Progress:
    step: int = 0
    loss: Tensor | float = 0.0  # summed over the steps since the last point
    since: int = 0  # those steps
    history: list[Point] = field(default_factory=list)


def learn(
    objective: Objective,
    course: Course,
    optimisers: Sequence[Optimizer],
    *,
    beside: Sequence[nn.Module] = (),
    snapshot: Snapshot,
    title: str = "",
) -> tuple[Point, ...]:
    """Run the course, or what is left of it after the snapshot, and give the curves.

    The network is then in eval mode. `beside` are modules that change with it. `title` is that of the bar, or else it
    has the name of the snapshot.
    On the CPU with the same number of threads, a run that goes on ends with the weights of one that was never
    interrupted, bit by bit. Raises Diverged, and ValueError if the snapshot is of another run.
    """
    network, device = objective.network, next(objective.network.parameters()).device
    mixed = device.type == "cuda" and torch.cuda.is_bf16_supported()
    modules = nn.ModuleList([network, *beside])
    rates = [[group["lr"] for group in optimiser.param_groups] for optimiser in optimisers]
    run = _restored(snapshot, modules, optimisers)
    with steps(title or snapshot.title, done=run.step, of=course.steps) as advance:
        while run.step < course.steps:
            factor = course.schedule(run.step, course.steps, course.warm_up)
            for optimiser, largest in zip(optimisers, rates, strict=True):
                for group, rate in zip(optimiser.param_groups, largest, strict=True):
                    group["lr"] = rate * factor
            with torch.autocast(device.type, torch.bfloat16, enabled=mixed):  # bfloat16 needs no scaling of the loss
                loss = objective.loss(run.step)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), course.clip)
            for optimiser in optimisers:
                optimiser.step()
                optimiser.zero_grad()
            run.loss, run.since, run.step = run.loss + loss.detach().double(), run.since + 1, run.step + 1
            ended = run.step % course.steps_per_epoch == 0 or run.step == course.steps
            if ended or run.step % max(1, course.steps // POINTS) == 0:
                _add_point(run, course, objective if ended else None, rate=max(rates[0]) * factor)
            if run.history:
                advance(run.step, run.history[-1].train_loss)
            if snapshot.due or run.step == course.steps:
                weights = {"modules": modules.state_dict(), "optimisers": [each.state_dict() for each in optimisers]}
                snapshot.save({**asdict(run), **weights})
    network.eval()
    return tuple(run.history)


def _add_point(run: Progress, course: Course, objective: Objective | None, *, rate: float) -> None:
    """Add a point to the curves. With `objective`, held-out images are measured."""
    loss = float(run.loss) / run.since
    held_out = objective.measure() if objective and math.isfinite(loss) else None
    if not math.isfinite(loss if held_out is None else held_out.loss):
        raise Diverged(f"the loss is not a finite number after step {run.step}: a lower learning rate may help")
    point = Point(
        step=run.step,
        epoch=run.step / course.steps_per_epoch,
        learning_rate=rate,
        train_loss=loss,
        held_out_loss=None if held_out is None else held_out.loss,
        accuracy=None if held_out is None else held_out.accuracy,
    )
    run.history.append(point)
    run.loss, run.since = 0.0, 0


def _restored(snapshot: Snapshot, modules: nn.Module, optimisers: Sequence[Optimizer]) -> Progress:
    state = snapshot.load()
    if state is None:
        return Progress()
    modules.load_state_dict(state.pop("modules"))
    for optimiser, saved in zip(optimisers, state.pop("optimisers"), strict=True):
        optimiser.load_state_dict(saved)
    state["history"] = [Point(**saved) for saved in state["history"]]
    return Progress(**state)
