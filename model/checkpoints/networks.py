"""Where in a file the network is: in which of its dictionaries, below which names, and what stands beside it.

Training scripts put a network into dictionaries and below names of their own (`state_dict`, `student.backbone.`), wrap
its modules (`_orig_mod.`), and save counters, losses and metrics beside it. A network is known by one tensor that every
network of a family has, once. What stands before the name of that tensor is not the network's, whatever it is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import prod

from model.checkpoints.checkpoint import CheckpointError, first_few
from model.checkpoints.weights import Place, Stored

KNOWN_BY = (  # that tensor, as the families of model/checkpoints/families/ call it
    r"(visual\.trunk\.)?patch_embed\.proj\.weight",  # timm, facebookresearch and this project
    r"embeddings\.patch_embedding(s\.projection|s|)\.weight",  # transformers
    r"conv_proj\.(conv_last\.)?weight",  # torchvision
    r"to_patch_embedding\.1\.weight",  # vit-pytorch
    r"visual\.class_embedding",  # OpenCLIP
    r"((params/)?(img/)?|opt/target/)embedding/kernel",  # Google
)
NETWORK = re.compile(rf"(?P<root>(.*?[./])??)({'|'.join(KNOWN_BY)})")
# Modules around modules: of torch.compile, of checkpointing and FSDP, and of DistributedDataParallel.
INNER = re.compile(r"(?<![^.])(_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module|_fpw_module|module)\.")
# Dictionaries in the order in which they are taken where a file has several. timm's train.py evaluates state_dict_ema,
# the moving average of state_dict (models/_helpers.py load_state_dict, use_ema).
PREFERRED = (
    "state_dict_ema",
    "model",
    "state_dict",
    "model_state_dict",  # as PyTorch's tutorials save it
    "model_state",
    "model_ema",
    "module",  # DeepSpeed
    "net",
    "teacher",
    "encoder",
    "target_encoder",
)
# What training leaves beside weights: losses, scores, and counters, each of which is one number.
SCORE = r"(acc|accuracy|auroc|auc|map|f1|f1_score|precision|recall|confmat|confusion_matrix|kappa|top)\d*"
LOSS = r"(\w+_)?(criterion|criteria|loss(es)?)(_fn|_func|_function|_module|_weights?)?"
METRIC = rf"(\w+_)?metrics?|(train|val|valid|test|eval)_(\w+_)?{SCORE}(_\w+)?|{SCORE}"
OF_LOSS = re.compile(f"{LOSS}|pos_weight|class_weights?|_extra_state")
TRAINING = re.compile(f"{OF_LOSS.pattern}|{METRIC}")
COUNTERS = {"n_averaged", "num_batches_tracked", "total_ops", "total_params", "num_updates", "initted", "step", "decay"}
# What may stand beside a network and belong to it: heads; the other tower; blocks, in some files of transformers; what
# facebookresearch trains with.
HEADS = {
    "head", "heads", "classifier", "classification", "clf", "cls", "fc",
    "linear", "lin", "logits", "out", "output", "top",
}  # fmt: skip
BESIDE_HEADS = {"class", "dist", "distillation", "last", "final", "layer", "mlp", "image", "label", "new", "probe"}
OTHERS = re.compile(
    r"(text_model|text_projection|visual_projection|logit_\w+|(encoder\.)?layers?|(dino|ibot)_head|decoder\w*|mask_token)"
    r"\b.*"
)
# What schemes of training leave beside a network, which does not read it.
UNREAD = re.compile(
    r"decoder\w*|mask_token|(dino|ibot)_head|prototypes|predictor|queue\w*|optimi[sz]er\w*|criterion\w*"
    r"|(\w+_)?(ema|momentum|teacher|discriminator)(_\w+)?"
)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The tensors of one network, by names without its wrappers."""

    place: Place  # names of the dictionaries around them
    chosen: str  # which network it is, where the file has several
    tensors: dict[str, Stored] = field(default_factory=dict)
    names_in_file: dict[str, str] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)  # those that do not stand below the wrapper of the network
    unread: list[str] = field(default_factory=list)  # counters, losses and metrics by their names in the file
    follows: str = ""  # its place in an nn.Sequential, such as "1", if what stands before it there has no tensors


def take(states: Mapping[Place, Mapping[str, Stored]], *, file: str, weights: str | None) -> Taken:
    """The network in the state dicts of a file, or all of one that has none, as the file of a head.

    `weights` says which network, as messages call it. Raises CheckpointError where that is not clear.
    """
    roots = {place: _roots(state) for place, state in states.items()}
    found = [(place, root) for place in states for root in roots[place]]
    of_msn = any("prototypes" in state for state in states.values())  # facebookresearch/msn, whose target is published
    preferred = ("target_encoder", *PREFERRED) if of_msn else PREFERRED
    holding = [place for place, state in states.items() if any(re.search(r"\b(weight|bias)$", name) for name in state)]
    chosen = place, root = (
        _choose(found, file, weights, preferred)
        if found
        else _choose([(one, "") for one in holding or states], file, None, preferred)
    )
    state = states[place]
    for other in roots[place]:
        if other != root:
            state = {name: stored for name, stored in state.items() if not _belongs(_plain(name), other, root)}
    heads = [one for one in holding if found and one != place and _is_head_of(one, place)]
    if heads:  # each module has a dictionary
        root = f"{place[-1]}.{root}"
        both = {place: state, **{one: states[one] for one in heads}}
        state = {f"{one[-1]}.{name}": stored for one, part in both.items() for name, stored in part.items()}
    others = [_called(*one) for one in found if one != chosen]
    others += [_called(one, "") for one in holding if not roots[one] and one not in (place, *heads)]
    taken = Taken(
        place=place,
        chosen=f"{_called(*chosen)}; the file has {', '.join(others)} too" if others else "",
        follows=_follows(states[place], chosen[1]),
    )
    if empty := sorted(name for name, stored in state.items() if stored.shape == (0,) and name.endswith(".weight")):
        raise CheckpointError(
            f"{file} has {len(empty)} empty tensors, {first_few(empty)}, as DeepSpeed's ZeRO-3 leaves them: in the "
            "folder with zero_to_fp32.py, `python zero_to_fp32.py . OTHER` writes the weights whole; give that folder"
        )
    root = root if found else _shared(state)
    for theirs, stored in state.items():
        inside, ours = _below(_plain(theirs), root)
        if not prod(stored.shape):
            continue
        if _is_of_training(ours, stored):
            taken.unread.append(theirs)
            continue
        if ours in taken.tensors:
            raise CheckpointError(f"{file} has both {theirs} and {taken.names_in_file[ours]}: save one network alone")
        taken.tensors[ours], taken.names_in_file[ours] = stored, theirs
        if not inside:
            taken.beside.add(ours)
    return taken


def leave_out(
    states: Mapping[Place, Mapping[str, Stored]], patterns: Sequence[str]
) -> tuple[dict[Place, dict[str, Stored]], set[str]]:
    """The state dicts without the tensors whose names in the file match a pattern, and the names of these. In a pattern
    * stands for any text. A name may have those of the dictionaries around it, with dots, before it.
    """
    left: dict[Place, dict[str, Stored]] = {}
    out: set[str] = set()
    for place, state in states.items():
        for name, stored in state.items():
            both = {name, ".".join([*place, name])}
            if any(fnmatchcase(one, pattern) for one in both for pattern in patterns):
                out |= both
            else:
                left.setdefault(place, {})[name] = stored
    return left, out


def is_head(name: str) -> bool:
    """Whether a name such as last_linear or cls_head is that of a classifier."""
    words = set(name.lower().split("_"))
    return words <= HEADS | BESIDE_HEADS and bool(words & HEADS)


def _is_head_of(one: Place, place: Place) -> bool:
    return len(one) == len(place) and one[:-1] == place[:-1] and is_head(one[-1])


def _plain(name: str) -> str:
    return INNER.sub("", name)


def _roots(state: Mapping[str, Stored]) -> list[str]:
    """What stands before the networks in a state dict. One in a loss or a metric counts if there is no other."""
    found = {match["root"] for name in state if (match := NETWORK.fullmatch(_plain(name)))}
    trained = {root for root in found if not any(TRAINING.fullmatch(part) for part in root.split("."))}
    return sorted(trained or found)


def _choose(
    found: list[tuple[Place, str]], file: str, weights: str | None, preferred: Sequence[str]
) -> tuple[Place, str]:
    called = {_called(*one): one for one in found}
    if weights is not None:
        if weights not in called:
            has = ", ".join(filter(None, called)) or "one network without a name"
            raise CheckpointError(f"--set weights={weights}: {file} has {has}")
        return called[weights]
    if not found:
        raise CheckpointError(f"{file} holds no state dict")

    def rank(one: tuple[Place, str]) -> list[int]:
        return [preferred.index(name) if name in preferred else len(preferred) for name in one[0]]

    best = [one for one in found if rank(one) == min(map(rank, found))]
    if len(best) > 1:
        names = [_called(*one) for one in best]
        example = next((name for name in names if "teacher" in name), names[0])  # of DINO's two it is evaluated
        raise CheckpointError(
            f"{file} has several networks, {', '.join(called)}: choose one, as in this example: --set weights={example}"
        )
    return best[0]


def _called(place: Place, root: str) -> str:
    """A network in messages and after --set weights=. One without dictionaries or wrappers around it is a dot."""
    return ".".join([*place, *filter(None, re.split(r"[./]", root))]) or "."


def _above(root: str) -> list[str]:
    """The wrapper around a network, and those around it, the outermost first: "a." and "a.b." of "a.b."."""
    return [root[: match.end()] for match in re.finditer(r"[./]", root)]


def _follows(state: Mapping[str, Stored], root: str) -> str:
    """The number of `root` in an nn.Sequential where nothing before it has tensors; else empty."""
    place = re.fullmatch(r"(?P<parts>|.*[./])(?P<number>[1-9]\d*)[./]", root)
    if not place:
        return ""
    before = tuple(f"{place['parts']}{number}{root[-1]}" for number in range(int(place["number"])))
    return "" if any(_plain(name).startswith(before) for name in state) else place["number"]


def _belongs(name: str, other: str, root: str) -> bool:
    """Whether a tensor is of the network below `other`, or beside that one, and not of the network below `root`."""
    own = [above for above in _above(other) if not root.startswith(above)]
    if own:
        return name.startswith(own[0])
    inner = [above for above in _above(root) if not other.startswith(above)]  # `root` is in the other network
    return not name.startswith(inner[0])


def _below(name: str, root: str) -> tuple[bool, str]:
    """Whether a tensor is in the network, and its name without wrappers.

    One beside the network that is not known to belong to it gets a name that no family knows: a norm after a backbone
    is not the norm in it.
    """
    if name.startswith(root):
        return True, name.removeprefix(root)
    if behind := _behind(name, root):
        return False, behind
    outermost = [above for above in _above(root) if name.startswith(above)]
    ours = name.removeprefix(outermost[-1]) if outermost else name
    known = is_head(ours.partition(".")[0]) or OTHERS.fullmatch(ours)
    return False, ours if known else f"beside/{name.replace('.', '/')}"


def _behind(name: str, root: str) -> str:
    """What stands behind the network in an nn.Sequential, under the name of a head; else empty."""
    for place in re.finditer(r"(?<![^./])(\d+)\.", root):
        layer = re.fullmatch(rf"{re.escape(root[: place.start()])}((\d+)\..*)", name)
        if layer and int(layer[2]) > int(place[1]):
            return f"head.{layer[1]}"
    return ""


def is_unread(name: str) -> bool:
    """Whether a tensor of this name is known to be for training alone."""
    return any(UNREAD.fullmatch(part) for part in re.split(r"[./]", name))


def _shared(state: Mapping[str, Stored]) -> str:
    """The first parts that all names share."""
    names = [_plain(name).split(".")[:-1] for name in state]
    parts = []
    for at_one_place in zip(*names, strict=False):
        if len(set(at_one_place)) > 1:
            break
        parts.append(f"{at_one_place[0]}.")
    return "".join(parts)


def _is_of_training(name: str, stored: Stored) -> bool:
    parts = re.split(r"[./]", name)
    counts = parts[-1] in COUNTERS and prod(stored.shape) == 1
    has_weights = parts[-1] in ("weight", "bias") and stored.shape  # a metric has single numbers of these names
    kinds = OF_LOSS if has_weights else TRAINING
    return counts or any(kinds.fullmatch(part) for part in parts)
