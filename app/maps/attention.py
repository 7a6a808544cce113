"""Makes the map that a choice asks for of what a forward pass left: attention in a layer, rollout or evidence."""

from app.bundle import Manifest
from app.maps.attention_map import AttentionMap, Chosen, one_of
from app.maps.choice import Choice, check_choice, head_named, layer_named, refuse_like
from app.maps.evidence import evidence
from app.maps.record import Maps

ROWS = {  # by what the head reads
    "cls": "class token's row",
    "cls_mean": "class token's row",
    "mean": "patches' mean row",
    "mean_all": "mean row of all tokens",
    "map": "patches' rows, weighted by the attention pool,",
    "map_all": "rows of all tokens, weighted by the attention pool,",
}


def choose(maps: Maps, manifest: Manifest, choice: Choice) -> AttentionMap:
    """The map asked for, of any method but measured. Raises InvalidParameter for a layer, head or label that does not
    exist.

    class_token: the row of the class token, or the row that replaces it in a model that pools otherwise; heads reduced.
    rollout: Abnar & Zuidema 2020 (arXiv 2005.00928), the row of the product over layers of (mean over heads + I) / 2.
    evidence: what each token adds to the logit of a label directly, over all heads; see export/evidence.py.
    positive_evidence: the same, with 0 in place of the negative numbers of every layer, before layers are summed, times
    rollout: what a head reads at a patch came from that patch only as far as rollout says.
    """
    check_choice(choice, manifest)
    refuse_like(choice)
    if choice.of_label:
        return evidence(maps, manifest, choice)
    head = head_named(choice.head, manifest.heads)
    whose = ROWS[manifest.pool]
    layer = layer_named(choice.layer, manifest.layers)
    if choice.method == "rollout":
        recipe = f"{whose} in the product over all layers of (mean over heads + identity) / 2"
        chosen = Chosen(method="rollout", layer="all", head="mean", recipe=recipe)
        return AttentionMap.of_tokens(maps.rollout, maps.rollout, manifest, chosen)
    # Heads of two layers have nothing in common but their number, so those of each layer are reduced first.
    layers, of_head = one_of(maps.attention.swapaxes(0, 1), head, axis="head")
    row, of_layer = one_of(layers, layer, axis="layer")
    recipe = f"{whose} after softmax, {of_head}, {of_layer}"
    return AttentionMap.of_tokens(
        row, maps.attention, manifest, Chosen(method="class_token", layer=layer, head=head, recipe=recipe)
    )
