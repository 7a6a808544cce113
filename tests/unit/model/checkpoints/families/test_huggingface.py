"""model/checkpoints/families/huggingface.py: what the golden files cannot show."""

import json

import pytest
import torch

from model.checkpoints import load_checkpoint
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.load import describe_checkpoint
from tests.support.altered import GOLDEN, altered, renamed, with_more, without
from tests.support.runs import same_weights


@pytest.fixture
def changed(tmp_path):
    return lambda case="vit", **changes: altered(f"huggingface-{case}", tmp_path, **changes)


def own_queries(state):
    for name in ("query", "key", "value"):
        state = renamed(f"attention.attention.{name}", f"attention.{name[0]}_proj")(state)
    return state


INDEX = "beit.encoder.layer.0.attention.attention.relative_position_bias.relative_position_index"
IDS = {f"{tower}_model.embeddings.position_ids": torch.arange(26) for tower in ("vision", "text")}


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("vit", {"tensors": renamed("vit.", "")}),  # saved from the model without its head, and a head added
        ("vit", {"tensors": renamed("vit.", "model.vit.")}),
        ("vit", {"tensors": renamed("vit.encoder.layer.", "vit.layers.")}),  # version 5's around names of version 4
        ("vit", {"tensors": renamed("vit.encoder.layer.", "encoder.layer.")}),
        ("vit", {"tensors": own_queries}),
        ("vit", {"tensors": renamed("attention.output.dense", "attention.o_proj")}),
        ("vit", {"tensors": with_more({"vit.embeddings.mask_token": torch.zeros(1, 1, 24)})}),
        ("beit", {"tensors": with_more({INDEX: torch.zeros(26, 26, dtype=torch.long)})}),  # of early files
        ("clip", {"tensors": with_more(IDS)}),
        ("vit", {"architectures": ["FSDPViTForImageClassification"]}),  # as some releases wrote it
    ],
)
def test_names_of_other_releases_and_tensors_without_a_use_change_nothing(changed, case, changes):
    loaded, plain = load_checkpoint(changed(case, **changes)), load_checkpoint(GOLDEN / f"huggingface-{case}")
    assert same_weights(loaded.model, plain.model)


@pytest.mark.parametrize("case", ["deit-teacher", "dinov2", "vit", "clip-classifier"])
def test_the_head_of_a_classifier_can_be_left_out(case):
    whole = load_checkpoint(GOLDEN / f"huggingface-{case}")
    alone = load_checkpoint(GOLDEN / f"huggingface-{case}", overrides={"num_classes": "0"})
    images = torch.randn(1, 3, *whole.config.image_size)
    with torch.inference_mode():
        assert torch.equal(alone.model(images), whole.model.embedding(whole.model.encode(images)))
    assert alone.labels == ()


@pytest.mark.parametrize(
    ("id2label", "reason"),
    [
        ({"0": "a", "1": "b", "2": "c", "3": "d", "5": "e"}, "there is no label of index 4"),
        ({"0": "a"}, "config.json has 1 labels, the model has 5 classes"),
    ],
)
def test_wrong_names_matter_only_where_they_are_served(changed, id2label, reason):
    folder = changed(id2label=id2label)
    with pytest.raises(CheckpointError, match=f"{reason}: --labels FILE names the classes, --labels none numbers"):
        load_checkpoint(folder)
    assert load_checkpoint(folder, labels="none").labels == tuple(f"class {i}" for i in range(5))
    assert load_checkpoint(folder, overrides={"num_classes": "0"}).labels == ()


SEVERAL = {f"classifier.{i}.weight": torch.ones(24, 24) for i in (0, 2)}


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        ("vit", {"problem_type": "multi_label"}, "problem_type multi_label: it is not known"),
        ("vit", {"tensors": without("classifier")}, "without classifier.weight"),
        ("vit", {"tensors": lambda state: without("classifier")(state) | SEVERAL}, "head of more than one layer"),
        ("clip-classifier", {"architectures": ["CLIPModel"]}, "reads is written nowhere"),
    ],
)
def test_what_is_wrong_with_a_head_matters_only_where_it_is_served(changed, case, changes, message):
    folder = changed(case, **changes)
    with pytest.raises(CheckpointError, match=rf"{message}.*--set num_classes=0 leaves the head out"):
        load_checkpoint(folder)
    left_out = load_checkpoint(folder, overrides={"num_classes": "0"})
    assert (left_out.labels, left_out.config.num_classes) == ((), 0)


def layer(name, rows, columns):
    return {f"{name}.weight": torch.randn(rows, columns), f"{name}.bias": torch.randn(rows)}


def classifier_of(architecture, columns=24):
    return {"architectures": architecture and [architecture], "tensors": with_more(layer("classifier", 5, columns))}


@pytest.mark.parametrize(
    ("case", "changes", "pool", "why"),
    [
        ("vit", classifier_of("MeanPooledViTForImageClassification"), "cls", "reads is written nowhere"),
        ("vit", {"tensors": with_more(layer("vit.pooler.dense", 24, 24))}, "pooler_output", "reads is written nowhere"),
        ("dinov3", classifier_of("DINOv3ViTForImageClassification", 48), "cls_mean", "reads is written nowhere"),
        ("dinov3", classifier_of(None), "cls", "what classifier.weight of a dinov3_vit model reads is"),
    ],
)
def test_what_a_persons_own_classifier_reads_has_to_be_given(changed, case, changes, pool, why):
    folder = changed(case, **changes)
    with pytest.raises(CheckpointError, match=rf"{why}.* --set pool={pool}$"):
        load_checkpoint(folder)
    config = load_checkpoint(folder, overrides={"pool": pool}).config
    assert (config.pool, bool(config.representation_size)) == (pool.replace("pooler_output", "cls"), "_output" in pool)


def test_the_problem_type_says_how_to_score(changed):
    assert describe_checkpoint(changed(problem_type="multi_label_classification")).score == "sigmoid"


def tower_alone(case, folder, *, prefix):
    """The image tower of a whole model as transformers 4 or 5 saves it: with and without a prefix."""

    def tensors(state):
        return {k.replace("vision_model.", prefix): v for k, v in state.items() if k.startswith("vision_model.")}

    tower = json.loads((GOLDEN / f"huggingface-{case}/config.json").read_text())["vision_config"]
    path = altered(f"huggingface-{case}", folder, tensors=tensors)
    (path / "config.json").write_text(json.dumps({**tower, "model_type": f"{case}_vision_model"}))
    return path


@pytest.mark.parametrize("prefix", ["vision_model.", ""])
@pytest.mark.parametrize(("case", "pool"), [("clip", "cls"), ("siglip", "map")])
@torch.no_grad()
def test_a_tower_alone_gives_what_the_whole_model_projects(tmp_path, case, pool, prefix):
    """CLIP's is the normed class token, SigLIP's is the embedding itself."""
    whole = load_checkpoint(GOLDEN / f"huggingface-{case}")
    alone = load_checkpoint(tower_alone(case, tmp_path, prefix=prefix))
    assert (alone.config.pool, alone.config.embedding, alone.text_tower, alone.labels) == (pool, 24, False, ())
    images = torch.randn(2, 3, *alone.config.image_size)
    project = whole.model.pre_logits or torch.nn.Identity()
    torch.testing.assert_close(project(alone.model(images)), whole.model(images))


def test_an_old_vision_config_dict_comes_first(tmp_path):
    """As CLIPConfig.__post_init__ has it: what it does not state is the default, not what vision_config states."""
    stated = json.loads((GOLDEN / "huggingface-clip/config.json").read_text())["vision_config"]
    del stated["hidden_act"]
    other = {"vision_config.hidden_act": "gelu", "vision_config.num_attention_heads": 7}
    description = describe_checkpoint(altered("huggingface-clip", tmp_path, vision_config_dict=stated, **other))
    assert (description.config.activation, description.config.heads) == ("quick_gelu", 3)
    assert description.origins["activation"].where == "transformers' default for clip"


@torch.no_grad()
def test_pixels_that_no_patch_covers_are_cut_off(tmp_path):
    """SigLIP of 384 pixels and patches of 14: its convolution leaves out the last 6."""
    folder = altered("huggingface-siglip", tmp_path, **{"vision_config.image_size": 22})
    recipe = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(recipe | {"size": {"height": 22, "width": 22}}))
    checkpoint = load_checkpoint(folder)
    preprocessing = checkpoint.preprocessing
    assert (preprocessing.size, preprocessing.resize_size, preprocessing.remainder) == ((20, 20), (22, 22), (2, 2))
    batch, patch_embed = torch.randn(2, 3, 22, 22), checkpoint.model.patch_embed
    assert torch.equal(patch_embed(batch), patch_embed(batch[..., :20, :20]))  # of a convolution: (2, 25, D)
