"""model/checkpoints/facts.py: what a person may set, what an error asks for, and how a family's answers are scored.

model/checkpoints/by_hand.py: the list of facts is that of the loaders, and `--help` has it.
"""

import ast
from pathlib import Path

import pytest

from export.arguments import FactsParser
from model.checkpoints.by_hand import FACTS
from model.checkpoints.checkpoint import CheckpointError, Origin
from model.checkpoints.facts import BY_HAND, MISSING, Facts, resolve_score
from model.checkpoints.load import describe_checkpoint
from model.checkpoints.recipe import FACTS as OF_PIXELS
from tests.support.altered import stated, torch_file


@pytest.mark.parametrize(
    ("stated", "text", "value"),
    [
        *((12, "6", 6), (1e-6, "1e-5", 1e-5), ("cls", "mean", "mean"), (True, "False", False)),
        *(((224, 224), "28,36", (28, 36)), ((0.5, 0.5, 0.5), "0,1,0.5", (0.0, 1.0, 0.5))),
        *((None, "[3, 4]", [3, 4]), (None, "text", "text")),
    ],
)
def test_an_override_replaces_the_fact_in_the_file(stated, text, value):
    facts = Facts({"fact": text})
    set_by_hand = facts.resolve("fact", stated, Origin.stated("config.json"))
    assert (set_by_hand, type(set_by_hand)) == (value, type(value))
    assert facts.origins == {"fact": BY_HAND}


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        *((12, text) for text in ("many", "1.5", "True", "", "1" + "0" * 30, "{[]: 1}", "(" * 10_000, "\0")),
        *((1e-6, text) for text in ("1e999", "1" + "0" * 5000)),
        ("cls", "7"),
        *(((224, 224), text) for text in ("224", "1,2,3", "1.5,2", "[1, 2]")),
        ((0.5, 0.5, 0.5), "a,b,c"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_an_example(stated, text):
    example = "224,224" if stated == (224, 224) else "0.5,0.5,0.5" if isinstance(stated, tuple) else str(stated)
    with pytest.raises(CheckpointError) as refusal:
        Facts({"fact": text}).resolve("fact", stated, Origin.stated("config.json"))
    assert str(refusal.value) == f"--set fact={text}: expected something like fact={example}"


def test_examples_stand_for_missing_facts_which_one_sentence_names():
    facts = Facts({"heads": "3"})
    assert facts.need({"heads": 12, "mean": (0.5, 0.5, 0.5), "image_size": (224, 224)}) == [3, (0.5,) * 3, (224, 224)]
    example = "--set mean=0.5,0.5,0.5 --set image_size=224,224"
    assert facts.missing == [f"the file does not say mean, image_size: give it, as in this example: {example}"]
    facts.resolve("image_size", (224, 224), Origin.read("the table of positions"))
    assert facts.origins == {"heads": BY_HAND, "mean": MISSING, "image_size": MISSING}


def test_a_fact_that_no_loader_uses_is_refused_with_those_there_are():
    facts = Facts({"colour": "red"})
    facts.resolve("name", "mine", Origin.stated("the file's name"))
    facts.resolve("heads", 3, Origin.stated("config.json"))
    with pytest.raises(CheckpointError, match=r"^--set colour: this kind of checkpoint has heads, name$"):
        facts.check_overrides()


def test_a_single_class_is_a_sigmoid_and_another_score_is_refused(tmp_path):
    path, overrides = torch_file("deit", "head")(tmp_path, 1), stated("deit")
    assert describe_checkpoint(path, overrides=overrides).score == "sigmoid"
    for score, why in (("tanh", "it is softmax or sigmoid"), ("softmax", "the softmax of one class is always 1")):
        with pytest.raises(CheckpointError, match=f"--set score={score}: {why}"):
            describe_checkpoint(path, overrides={**overrides, "score": score})


def test_a_softmax_of_one_class_that_a_file_states_is_a_sigmoid():
    facts = Facts()
    assert resolve_score(facts, 1, said="softmax", where="metadata") == "sigmoid"
    assert facts.origins["score"].where == "one class, whose softmax is always 1"
    assert resolve_score(Facts(), 2, said="softmax", where="metadata") == "softmax"


def test_the_list_has_every_fact_that_a_loader_asks_for():
    asked = {*OF_PIXELS, "weights"}
    for path in Path("model/checkpoints").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(ast.Attribute(attr="resolve"), [ast.Constant(str(name)), *_]):
                    asked.add(name)
                case ast.Call(ast.Attribute(attr="need"), [ast.Dict(keys), *_]):
                    asked |= {key.value for key in keys if isinstance(key, ast.Constant)}
    assert asked == FACTS.keys()


def test_help_has_the_list(capsys):
    with pytest.raises(SystemExit):
        FactsParser().parse_args(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-len(FACTS) :]] == [*FACTS]


@pytest.mark.parametrize("name", ["", 201 * "x"])
def test_a_name_that_no_bundle_may_have_is_refused_before_the_export(name):
    with pytest.raises(CheckpointError, match=r"^--set name=NAME: give it 1 to 200 characters"):
        describe_checkpoint("model/demo/shapes.safetensors", overrides={"name": name})
