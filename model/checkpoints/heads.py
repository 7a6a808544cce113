"""A linear classifier, wherever it stands: in nn.Sequential, or beside a backbone under a name of its own."""

import re
from collections.abc import Mapping

from model.checkpoints.checkpoint import CheckpointError, first_few
from model.checkpoints.computed import refusal
from model.checkpoints.facts import LEFT_OUT
from model.checkpoints.networks import is_head
from model.checkpoints.source import Source
from model.checkpoints.tensors import NOTHING


def settle(source: Source, own: Mapping[str, str], *, served: bool) -> str:
    """Give a linear head the name of the family's own, and return a sentence for a person about that, if it did.

    `own` has what stands before `.weight` and `.bias` of the family's heads, the usual one first, each with a pattern
    for what else may stand there. A head that is not `served` is left out where it is not linear, or of
    another name. Else raises CheckpointError for it, naming its tensors.
    """
    given = {name.partition(".")[0] for name in source.names}
    heads = {head: head for head in own if head in given}
    if own and not heads:
        beside = sorted({first for name in source.beside if is_head(first := name.partition(".")[0])})
        if len(beside) > 1 and served:
            raise CheckpointError(f"{', '.join(beside)} stand beside the network, and one head is supported")
        heads = dict.fromkeys(beside, next(iter(own)))
    told = []
    for head, ours in heads.items():
        names = [name for name in source.names if name.startswith(f"{head}.")]
        of_layer = [name for name in names if not re.fullmatch(own.get(head, NOTHING), name)]
        layer, problem = _linear(source, of_layer or names)
        if problem and not of_layer:  # such as the projections that DINO trains with
            continue
        if problem and served:
            raise CheckpointError(f"{problem}. {LEFT_OUT}")
        if problem or (head != ours and not served):
            source.rename(dropping="|".join(map(re.escape, names)))
        elif layer not in (None, f"{ours}."):
            told.append(source.names_in_file[f"{layer}weight"])
            source.rename([(rf"^{re.escape(layer or '')}(?=(weight|bias)$)", f"{ours}.")])
            source.foreign_head = told[-1] if head != ours else ""
    if not told:
        return ""
    return f"{' and '.join(told)} is taken for the whole head: a layer without weights, such as ReLU, leaves no trace."


def _linear(source: Source, names: list[str]) -> tuple[str | None, str]:
    """What stands before "weight" of the only linear layer, or None without one; or why it is not all of the head."""
    if computed := refusal(source.names_in_file[name] for name in names):
        return None, computed
    matrices = [name for name in names if name.endswith(".weight") and len(source.shape(name)) == 2]
    theirs = [source.names_in_file[name] for name in matrices]
    if len(matrices) > 1:
        return None, f"{first_few(theirs)}: a head of more than one layer is not supported"
    if not matrices:
        return None, ""
    layer = matrices[0].removesuffix("weight")
    if strange := [source.names_in_file[name] for name in names if name not in (f"{layer}weight", f"{layer}bias")]:
        return None, f"{first_few(strange)} beside {theirs[0]}: a head that is not linear is not supported"
    return layer, ""
