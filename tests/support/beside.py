"""Networks that between them have every pooling beside every value of every other switch."""

import random
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from model.config import RopeConfig, ViTConfig
from tests.support.toy import toy_config

Change = dict[str, Any]

TOGETHER: dict[str, tuple[Change, ...]] = {  # fields that say something only beside others, and numbers
    "distillation": ({}, {"distillation_token": True}, {"distillation_token": True, "distillation_head": True}),
    "representation": (
        {},
        {"representation_size": 9},
        {"representation_size": 9, "representation": "linear", "representation_bias": False},
    ),
    "rope": ({}, {"rope": RopeConfig(pairs="halves")}, {"rope": RopeConfig(kind="learned")}),
    "stem": ({}, {"stem_layers": (1, 1)}),
    "registers": ({}, {"registers": 2}),
    "width of attention": ({}, {"attn_dim": 24}),
    "sizes of the pool": ({}, {"pool_heads": 4, "pool_mlp_dim": 40}),
    "layers of the head": ({}, {"head_layers": 2}),
    "precision": ({}, {"precision": "int8"}, {"precision": "bf16"}),
}
ALIKE = {  # the graph has the same operators whatever they are
    *("image_size", "patch_size", "width", "depth", "mlp_dim", "heads", "norm_eps", "position_resize", "stem_numerics"),
    "num_classes",  # without a head the rest is the same
}

ONCE = {"activation", "positions", "norm"}  # beside the first pooling alone


def switches() -> dict[str, tuple[Change, ...]]:
    """The changes that a field can make, or several together; first the least."""
    found = dict(TOGETHER)
    known = {field for changes in TOGETHER.values() for change in changes for field in change}
    for name, kind in get_type_hints(ViTConfig).items():
        if name not in known | ALIKE:
            values = (True, False) if kind is bool else get_args(kind)
            assert kind is bool or get_origin(kind) is Literal, f"{name}: say in {__file__} which values to try"
            plain = getattr(toy_config(), name)
            found[name] = tuple({name: value} for value in sorted(values, key=lambda value: value != plain))
    return found


def valid(change: Change) -> bool:
    try:
        toy_config(**{name: value for name, value in change.items() if name != "precision"})
    except ValueError:
        return False
    return True


def networks() -> Iterator[Change]:
    """Changes to the toy. For each pooling a greedy choice: of each switch one that this pooling has not had yet."""
    others = switches()
    dice = random.Random(0)
    pools = others.pop("pool")
    for base in pools:
        left = [
            (name, index)
            for name, changes in others.items()
            for index, change in enumerate(changes)
            if (name not in ONCE or base is pools[0]) and valid(base | change)
        ]
        while left:
            (first, index), *_ = left
            network = base | others[first][index]
            had = {(first, index)}
            for name in dice.sample([*others], len(others)):
                new = [at for of, at in left if of == name]
                for at in [*dice.sample(new, len(new)), *range(len(others[name]))]:
                    if name != first and valid(network | others[name][at]):
                        network |= others[name][at]
                        had.add((name, at))
                        break
            left = [switch for switch in left if switch not in had]
            yield network
