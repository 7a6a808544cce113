"""client/vit_serve_client/bulk.py, by the command: what is asked again, what is recorded, and what ends the run."""

import csv
import itertools
import os
import re
import threading
import time
from collections import Counter
from io import BytesIO
from pathlib import Path
from threading import Event

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.processes import eventually
from tests.unit.client.conftest import MODEL, Answered, as_json, problem
from vit_serve_client.bulk import BYTES, IMAGES, Bulk, GivenUp
from vit_serve_client.client import NPY, Client, NotTheService
from vit_serve_client.command import main
from vit_serve_client.mirror import Mirror
from vit_serve_client.output import Output

HTML = b"<html>Please log in</html>"


@pytest.fixture
def images(tmp_path):
    """Ten images; the bytes of each are its name."""
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(10):
        (folder / f"{i}.png").write_bytes(f"{i}.png".encode())
    return folder


def run(service, images, *options, patience="10"):
    out = images.parent / "out.csv"
    status = main([service.url, str(images), "--out", str(out), "--patience", patience, *options])
    with out.open(newline="") as file:
        return status, {Path(row["image"]).name: row["label"] or row["error"] for row in csv.DictReader(file)}


def named(images):
    return {image.name: image.name for image in images.iterdir()}


def test_a_busy_image_among_others_is_sent_again_alone(service, images, monkeypatch, capsys):
    """A 503 inside a 200 answer."""
    monkeypatch.setattr("vit_serve_client.bulk.SILENCE_S", 0.0)
    busy = Counter({b"3.png": 2, b"9.png": 1})

    def outcome(image):
        busy[image] -= 1
        return {"error": problem(503, "deadline-exceeded")} if busy[image] >= 0 else service.result(image)

    service.answers["/classify"] = outcome
    assert run(service, images) == (0, named(images))
    assert {query["attention"] for path, query in service.ways if path == "/classify"} == {"false"}
    asked = Counter(image for _, images, _ in service.asked for image in images)
    assert asked == {**dict.fromkeys((name.encode() for name in named(images)), 1), b"3.png": 3, b"9.png": 2}
    said = capsys.readouterr().err
    assert said.count("is busy (503") == 1
    assert f"{service.url} was too busy for 3 requests, which were sent again\n" in said


def test_an_image_that_cannot_be_used_is_recorded_with_the_reason(service, images, capsys):
    def outcome(image):
        return {"error": problem(415, "unsupported-type")} if image in (b"3.png", b"9.png") else service.result(image)

    service.answers["/classify"] = outcome
    refused = dict.fromkeys(("3.png", "9.png"), "This is unsupported-type.")
    assert run(service, images) == (1, named(images) | refused)
    asked = len(service.asked)
    assert run(service, images) == (1, named(images) | refused)
    assert "10 already in " in (said := capsys.readouterr().err)
    assert "out.csv (8 named, 2 unusable); none was left to send" in said
    assert [images for _, images, _ in service.asked[asked:]] == [[]]  # the model


def test_results_stand_in_the_order_of_the_images_and_none_is_lost_if_the_run_ends(service, images):
    last = Event()

    def outcome(image):
        if image == b"9.png":
            last.set()
        if image == b"0.png" and (not last.wait(60) or fails):
            raise GivenUp
        return service.result(image)

    service.answers["/classify"] = outcome
    fails = True
    assert run(service, images) == (2, {"8.png": "8.png", "9.png": "9.png"})
    fails = False
    _, found = run(service, images)
    assert [*found] == ["8.png", "9.png", *(f"{i}.png" for i in range(8))]
    (images.parent / "out.csv").unlink()
    last.clear()
    assert [*run(service, images)[1]] == [f"{i}.png" for i in range(10)]


def test_nothing_is_recorded_after_a_record_that_was_cut_short(service, images):
    """As by Ctrl-C between the embedding of an image and its row: the next embedding would be taken for this one."""
    last, recorded = Event(), []

    def outcome(image):
        if image == b"9.png":
            last.set()
        return service.result(image)

    def record(image, _):
        assert last.wait(60)
        recorded.append(image)
        raise GivenUp

    service.answers["/classify"] = outcome
    names = [str(images / f"{i}.png") for i in range(10)]
    with Client(service.url) as client:
        bulk = Bulk(client, patience_s=10, waiting=print, top_k=1, maps=None, method="rollout", embedding=False)
        with pytest.raises(GivenUp):
            bulk.run(names, record, concurrency=2)
    assert recorded == names[:1]


def test_the_least_sure_images_are_copied_with_their_maps(service, images, tmp_path, capsys):
    service.draw()

    def outcome(image):
        (one,) = service.result(image)["predictions"]
        return service.result(image) | {"id": "kept", "predictions": [one | {"score": abs(int(image[:1]) - 4.2) / 10}]}

    service.answers["/classify"] = outcome
    assert run(service, images) == (0, named(images))
    asked = len(service.asked)
    assert run(service, images, "--least-sure", "2", str(tmp_path / "odd")) == (0, named(images))
    assert f"least sure: 2 in {tmp_path}/odd, with scores up to 0.08\n" in capsys.readouterr().err
    found = {path.name: path.read_bytes() for path in (tmp_path / "odd").iterdir()}
    assert found == {"4.png": b"4.png", "4.png.png": b"drawn", "5.png": b"5.png", "5.png.png": b"drawn"}
    sent = [(path, sent) for path, sent, _ in service.asked[asked:] if sent]
    assert sent == [("/classify", [b"4.png", b"5.png"])]


def test_the_least_familiar_images_are_copied_also_those_that_were_refused_for_it(service, images, tmp_path):
    with pytest.raises(SystemExit, match="--least-familiar is for models that know their images"):
        run(service, images, "--least-familiar", "2", "x")
    service.say(familiarity={"pictures": 9})

    def outcome(image):
        known = {"familiarity": abs(int(image[:1]) - 4.2) / 10}
        return {"error": problem(422) | known} if image == b"4.png" else service.result(image) | known

    service.answers["/classify"] = outcome
    assert run(service, images, "--least-familiar", "2", str(tmp_path / "odd"))[0] == 1
    assert {path.name for path in (tmp_path / "odd").iterdir()} == {"4.png", "5.png"}


def test_the_service_is_asked_to_refuse_unfamiliar_images_where_the_command_says_so(service, images, tmp_path):
    service.say(familiarity={"pictures": 9})
    options = ["--unfamiliar", "refuse", "--least-familiarity", "0.1", "--embeddings", str(tmp_path / "vectors")]
    assert run(service, images, *options)[0] == 0
    asked = {(path, query.get("unfamiliar"), query.get("least_familiarity")) for path, query in service.ways}
    assert asked == {("/model", None, None), ("/classify", "refuse", "0.1"), ("/embed", "refuse", "0.1")}


def test_parts_share_the_images(service, images, tmp_path):
    """One of a single image is empty."""
    for source, count in ((images, 3), (images / "0.png", 2)):
        found = []
        for i in range(count):
            out = tmp_path / f"{i} of {count}.csv"
            assert main([service.url, str(source), "--part", f"{i}/{count}", "--out", str(out)]) == 0
            with out.open(newline="") as file:
                found += [Path(row["image"]) for row in csv.DictReader(file)]
        assert sorted(found) == (sorted(images.iterdir()) if source == images else [source])


def test_labels_and_embeddings_as_parquet(service, images, tmp_path):
    """A run that was given up, one that goes on with it, and one with another image."""
    out, vectors = tmp_path / "out.parquet", tmp_path / "vectors.parquet"
    command = [service.url, str(images), "--out", str(out), "--embeddings", str(vectors), "--concurrency", "1"]
    fails = problem(415)
    service.answers["/classify"] = lambda image: {"error": fails} if image == b"3.png" else service.result(image)
    embedded = service.answers["/embed"]
    service.answers["/embed"] = lambda image: {"embedding": [1.0]} if image == b"9.png" else embedded(image)
    assert main(command) == 2
    assert not out.exists()
    assert not vectors.exists()
    service.answers["/embed"] = embedded
    assert main(command) == 1
    (images / "99.png").write_bytes(b"99.png")
    assert main(command) == 1
    sent = Counter(image for path, sent, _ in service.asked if path == "/classify" for image in sent)
    assert {image for image, times in sent.items() if times > 1} == {b"9.png"}
    assert {path.name for path in tmp_path.glob("*.parquet*")} == {"out.parquet", "vectors.parquet"}
    rows = {Path(row["image"]).name: row["label"] or row["error"] for row in pq.read_table(out).to_pylist()}
    assert rows == named(images) | {"3.png": "This is unusable-image."}
    table = pq.read_table(vectors)
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float>[2]"
    found = {Path(row["image"]).name: row["embedding"] for row in table.to_pylist()}
    assert found == {name: [len(name), 1.0] for name in named(images) if name != "3.png"}
    out.unlink()
    with pytest.raises(SystemExit, match=r"vectors.parquet has other images than the output: give another --out"):
        main(command)


def test_a_fault_of_the_service_is_not_recorded_and_the_image_is_sent_again(service, images, capsys):
    fails = {"error": problem(500, "internal-server-error")}
    service.answers["/classify"] = lambda image: fails if image == b"3.png" else service.result(image)
    status, found = run(service, images)
    assert (status, found) == (1, {name: name for name in named(images) if name != "3.png"})
    assert "1 of 10 images could not be used" in capsys.readouterr().err
    service.answers["/classify"] = service.result
    assert run(service, images) == (0, named(images))


def test_images_that_are_refused_together_are_sent_alone(service, images):
    service.answers["/classify"] = lambda image: {"error": problem(415, image.decode())}
    assert run(service, images) == (1, {name: f"This is {name}." for name in named(images)})


def test_an_image_that_a_proxy_refuses_is_named_and_sent_again_by_the_next_run(service, images, capsys):
    """Its limit may have been raised since."""
    (images / "9.png").write_bytes(b"x" * (BYTES + 1))
    service.too_large = BYTES
    status, found = run(service, images)
    assert (status, found) == (1, {name: name for name in named(images) if name != "9.png"})
    assert "something else: Too large" in capsys.readouterr().err
    service.too_large = 2**40
    assert run(service, images)[0] == 0


def test_a_firewall_that_refuses_one_image_of_many_ends_no_run(service, images):
    each = service.each

    def refusing(outcome, images):
        return (403, {}, HTML) if b"3.png" in images else each(outcome, images)

    service.each = refusing
    assert run(service, images) == (1, {name: name for name in named(images) if name != "3.png"})


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        ("/model", (200, {"Content-Type": "text/html"}, HTML), "200 No answer of the service: http.*else: <html>Plea"),
        ("/classify", (200, {}, b'{"results": 7}'), "answers something else: {"),
        ("/classify", (401, {}, HTML), "wants an API key"),
        ("/classify", (200, {"Content-Encoding": "gzip"}, b""), "answers something else: a compressed body"),
        ("/model", (200, {}, b"\x1b]0;x\x07"), r"answers something else: \\x1b\]0;x\\x07$"),
        ("/model", (302, {"Location": "http://login.test/"}, b""), "redirects to http://login.test/."),
        ("/classify", as_json(problem(422, "invalid-parameter"), 422), "This is invalid-parameter"),
        ("/model", as_json({**MODEL, "name": "\ud800", "manifest": {}}), "200 No answer of the service"),
        ("/model", as_json({**MODEL, "manifest": {"features": 1, "labels": 5}}), "200 No answer of the service"),
    ],
)
def test_an_answer_about_no_image_ends_the_run_and_marks_no_image(service, images, path, answer, message, capsys):
    usual, service.answers[path] = service.answers[path], answer
    assert run(service, images) == (2, {})
    assert re.search(message, capsys.readouterr().err, re.MULTILINE)
    service.answers[path] = usual
    assert run(service, images) == (0, named(images))


GOOD = {"predictions": [{"label": "a", "index": 0, "score": 0.5}], "embedding": [0.5]}


@pytest.mark.parametrize(
    "result",
    [
        {"error": {"status": 503}},
        {"predictions": "abc"},
        {"predictions": [{"label": "\ud800", "index": 0, "score": 0.5}]},
        {"id": 7},
        {"embedding": [10**999]},
    ],
)
def test_a_result_of_another_form_is_not_taken(service, images, result, capsys):
    service.answers |= dict.fromkeys(
        ("/classify", "/embed"), as_json({"model": service.model, "results": [GOOD | result]})
    )
    assert main([service.url, str(images / "1.png"), "--embeddings", str(images.parent / "embeddings")]) == 2
    assert "given up: 200 No answer of the service" in capsys.readouterr().err


def test_an_id_is_one_part_of_a_path(service):
    service.answers["/attention/../x?\n\ud800".replace("\ud800", "?")] = 200, {"Content-Type": "image/png"}, b"drawn"
    with Client(service.url) as client:
        assert client.attention("../x?\n\ud800", format="png") == b"drawn"


@pytest.mark.parametrize("part", [b" ", bytes(2**20)])
def test_an_answer_without_an_end_is_left(service, monkeypatch, part):
    threads = threading.active_count()
    monkeypatch.setattr(
        httpx.HTTPTransport, "handle_request", lambda *_: httpx.Response(200, content=itertools.repeat(part))
    )
    refused = pytest.raises(NotTheService, match="more than 33,554,432 bytes")
    with (
        Client(service.url, deadline_s=60 if len(part) > 1 else 0.1) as client,
        refused if len(part) > 1 else pytest.raises(httpx.ReadTimeout, match=r"no whole answer in 0\.1 seconds"),
    ):
        client.model()
    eventually(lambda: threading.active_count() == threads)


def test_an_answer_that_does_not_begin_is_left_after_patience(service, images, monkeypatch, capsys):
    monkeypatch.setattr("vit_serve_client.command.LEAST_S", 0.1)
    ended = Event()
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda *_: ended.wait(60))
    assert main([service.url, str(images), "--patience", "0.1"]) == 2
    ended.set()
    refused = f"no whole answer in 0.1 seconds, at {service.url}/"
    assert f"nothing was answered for 0.1 seconds ({refused})" in capsys.readouterr().err


def test_the_key_goes_to_no_other_host(service, images):
    """The service of these tests is asked under no other name."""
    service.answers["/classify"] = (307, {"Location": "http://other.test/classify"}, b"")
    assert run(service, images, "--key", "secret") == (2, {})
    assert {key for _, _, key in service.asked} == {"secret"}


@pytest.mark.parametrize("status", [429, 500, 522])
def test_a_busy_service_gets_the_request_again(service, images, status):
    service.first = [(status, {}, HTML), service.answers["/model"], (status, {}, HTML)]
    assert run(service, images) == (0, named(images))


def test_the_client_waits_for_retry_after(service, images):
    service.first = [(503, {"Retry-After": "1"}, b"")]
    start = time.monotonic()
    assert run(service, images) == (0, named(images))
    assert time.monotonic() - start >= 1


def test_the_run_ends_after_patience_without_an_answer(service, images, capsys):
    service.answers["/classify"] = (503, {"Retry-After": "60"}, b"")
    assert run(service, images, patience="0.3") == (2, {})
    said = capsys.readouterr().err
    assert said.count(f"{service.url} does not answer (503 ") == 1  # something in front of it does
    assert "nothing was answered for 0.3 seconds (503" in said


def test_a_dead_proxy_is_named_without_its_password_and_not_used_for_this_machine(images, monkeypatch, capsys):
    monkeypatch.setattr("vit_serve_client.bulk.SILENCE_S", 0.0)
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
    assert main(["http://service.test", str(images), "--patience", "0"]) == 2
    said = capsys.readouterr().err
    refused = "[Errno 111] Connection refused, by the proxy http://127.0.0.1:1 of HTTP_PROXY: does no_proxy lack this"
    assert f"http://service.test does not answer ({refused} server?). Is its address right" in said
    assert "secret" not in said
    with Client("http://service.test") as client, pytest.raises(httpx.ConnectError, match=f"^{re.escape(refused)}"):
        client.model()
    assert main(["http://127.0.0.1:2", str(images), "--patience", "0"]) == 2
    said = capsys.readouterr().err
    assert "proxy" not in said
    assert "Connection refused, at http://127.0.0.1:2" in said


def test_a_file_of_certificates_that_cannot_be_read_matters_over_https_alone(
    service, images, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "certificates"
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    assert run(service, images) == (0, named(images))
    assert main(["https://service.test", str(images)]) == 2
    assert f"given up: no certificates can be read from SSL_CERT_FILE, {path}: " in capsys.readouterr().err


def test_a_model_that_changes_ends_the_run(service, images, capsys):
    service.model = service.model | {"digest": "another"}
    assert run(service, images) == (2, {})
    assert "the service has another model now: give another --out" in capsys.readouterr().err


def test_an_output_has_images_of_one_model(service, images):
    assert run(service, images) == (0, named(images))
    done = (images.parent / "out.csv").read_bytes()
    service.answers["/model"] = as_json(service.model | {"digest": "another"})
    with pytest.raises(SystemExit, match="images of the model m@0123456789ab, and the service has m@another: give"):
        run(service, images)
    assert (images.parent / "out.csv").read_bytes() == done


def test_an_output_has_as_many_labels_for_each_image(service, images):
    """Nine are asked for, and the model has three."""
    service.answers["/classify"] = lambda image: {"predictions": 3 * service.result(image)["predictions"]}
    assert run(service, images, "--top-k", "9") == (0, named(images))
    done = (images.parent / "out.csv").read_bytes()
    with pytest.raises(SystemExit, match=r"per image are 3 in .*out.csv and would be 2 in this run: give another"):
        run(service, images, "--top-k", "2")
    asked = len(service.asked)
    assert run(service, images, "--top-k", "4") == (0, named(images))
    assert [images for _, images, _ in service.asked[asked:]] == [[]]  # the model
    assert (images.parent / "out.csv").read_bytes() == done


def test_an_image_without_an_embedding_gets_the_reason_and_no_file(service, images):
    embedded = service.answers["/embed"]
    service.answers["/embed"] = lambda image: {"error": problem(415)} if image == b"3.png" else embedded(image)
    folder = images.parent / "embeddings"
    outcome = named(images) | {"3.png": "This is unusable-image."}
    assert run(service, images, "--embeddings", str(folder)) == (1, outcome)
    found = {path.name: np.load(path) for path in folder.rglob("*.npy")}
    assert {*found} == {f"{name}.npy" for name in named(images) if name != "3.png"}
    assert {(vector.dtype.name, *vector) for vector in found.values()} == {("float32", 5, 1)}


def test_each_image_gets_a_file_of_its_patch_tokens_and_one_that_is_refused_none(service, images):
    def tokens(image: bytes) -> bytes:
        file = BytesIO()
        np.save(file, np.full((1, 3, 5, 2), len(image), np.float32))
        return file.getvalue()

    def answer(found: list[bytes]) -> Answered:
        return as_json(problem(422), 422) if found == [b"3.png"] else (200, {"Content-Type": NPY}, tokens(found[0]))

    service.whole["/embed"] = answer
    folder = images.parent / "patches"
    outcome = named(images) | {"3.png": "This is unusable-image."}
    assert run(service, images, "--patches", str(folder)) == (1, outcome)
    found = {path.name: np.load(path) for path in folder.rglob("*.npy")}
    assert {*found} == {f"{name}.npy" for name in named(images) if name != "3.png"}
    assert all((array == len("1.png")).all() and array.shape == (3, 5, 2) for array in found.values())
    assert {query["tokens"] for path, query in service.ways if path == "/embed"} == {"patches"}


@pytest.mark.parametrize("id", [None, "expired"])
def test_an_image_without_its_heatmap_is_not_recorded_and_is_sent_again(service, images, capsys, id):
    service.draw()
    service.answers["/attention/expired"] = as_json(problem(404, "unknown-attention"), 404)
    ids = {b"3.png": id}
    service.answers["/classify"] = lambda image: service.result(image) | {"id": ids.get(image, "kept")}
    folder = images.parent / "maps"
    assert run(service, images, "--maps", str(folder)) == (1, {name: name for name in named(images) if name != "3.png"})
    assert "3.png: The service did not keep the maps of this image." in capsys.readouterr().err
    assert {query["attention"] for path, query in service.ways if path == "/classify"} == {"now"}  # each map is fetched
    ids.clear()
    assert run(service, images, "--maps", str(folder)) == (0, named(images))
    assert {path.name for path in folder.rglob("*.png")} == {f"{name}.png" for name in named(images)}


def test_the_same_command_again_does_not_send_what_it_made_among_the_images(service, images):
    service.draw()
    expected = named(images)
    for _ in range(2):
        assert run(service, images, "--maps", str(images / "made")) == (0, expected)


def test_a_name_that_is_too_long_for_a_heatmap_stops_nothing(service, images, capsys):
    service.draw()
    expected = named(images)
    long = images / f"{'0' * 250}.png"
    long.touch()
    folder = images.parent / "folder"
    assert run(service, images, "--maps", str(folder)) == (1, expected)
    assert f"{long}: Its heatmap can have no such name here.\n" in capsys.readouterr().err
    assert {path.stem for path in folder.rglob("*.*")} == {*expected}


@pytest.mark.parametrize("option", ["--embeddings", "--maps", "--patches"])
def test_an_output_without_embeddings_or_maps_does_not_get_some(service, images, option):
    folder = images.parent / "folder"
    assert run(service, images) == (0, named(images))
    with pytest.raises(SystemExit, match=r"the output has images that .*folder does not have: give another --out"):
        run(service, images, option, str(folder))


def test_a_model_without_labels_gives_embeddings_and_rows_without_labels(service, images):
    service.say(labels=[])
    folder = images.parent / "embeddings"
    unlabelled = dict.fromkeys(named(images), "")
    for _ in range(2):
        assert run(service, images, "--embeddings", str(folder)) == (0, unlabelled)
        assert {path.name for path in folder.rglob("*.npy")} == {f"{name}.npy" for name in named(images)}
    assert {path for path, _, _ in service.asked} == {"/model", "/embed"}
    assert sum(len(sent) for _, sent, _ in service.asked) == len(named(images))


def test_a_model_without_labels_names_among_those_that_are_given(service, images):
    service.say(labels=[])
    assert run(service, images, "--labels", "a red hat,a dog", "--prompt", "a {}")[0] == 0
    sent = [query for path, query in service.ways if path == "/classify"]
    assert {(query["labels"], query["prompt"]) for query in sent} == {("a red hat,a dog", "a {}")}


def test_an_interrupted_run_says_what_is_done_and_waits_for_no_answer(service, images, capsys, monkeypatch):
    answered, write = Event(), Output.write

    def outcome(image):
        assert image != b"8.png" or answered.wait(60)
        return service.result(image)

    def interrupted(output, image, result):
        write(output, image, result)
        if image.endswith("7.png"):
            raise KeyboardInterrupt

    service.answers["/classify"] = outcome
    monkeypatch.setattr(Output, "write", interrupted)
    status, recorded = run(service, images)
    answered.set()
    assert (status, len(recorded)) == (130, IMAGES)
    said = f"interrupted: {IMAGES} of 10 images done. The same command goes on from here\n"
    assert capsys.readouterr().err.endswith(said)


def test_requests_have_few_images_and_few_bytes(service, images):
    for i in range(2):
        (images / f"large{i}.png").write_bytes(b"x" * (BYTES // 2 + 1))
    assert run(service, images)[0] == 0
    assert sorted(len(images) for _, images, _ in service.asked) == [0, 1, 3, IMAGES]


@pytest.mark.timeout(60)
def test_a_file_that_cannot_be_read_stops_nothing(service, images, capsys):
    expected = named(images)
    os.mkfifo(images / "pipe.png")
    (images / "endless.png").symlink_to("/dev/zero")
    (images / "gone.png").symlink_to("nowhere")
    assert run(service, images) == (1, expected)
    said = capsys.readouterr().err
    for name, why in {"pipe": "it is a FIFO", "endless": "it is a device", "gone": "No such file"}.items():
        assert f"{name}.png: The file cannot be read: {why}" in said


@pytest.mark.parametrize(
    ("base", "image", "expected"),
    [
        (".", "a.jpg", "a.jpg.png"),
        ("../x", "../x/y/a.jpg", "y/a.jpg.png"),
        (".", "../x/a.jpg", "x/a.jpg.png"),
        ("x", "x/../../a.jpg", "a.jpg.png"),
        (".", "....//a.jpg", "..../a.jpg.png"),
    ],
)
def test_heatmaps_stay_in_their_folder(base, image, expected):
    assert Mirror(Path("maps"), Path(base), ".png").path(image) == Path("maps", expected)


@pytest.mark.parametrize("option", [["--maps"], ["--embeddings"], ["--least-sure", "2"], ["--least-familiar", "2"]])
def test_two_images_do_not_get_one_file(service, images, tmp_path, option):
    same = str(images / "x" / ".." / "3.png")
    (images / "x").mkdir()
    (images / "x" / "3.png").touch()
    with pytest.raises(SystemExit, match=r"3.png would have the same file in .*folder: send them in two runs"):
        main([service.url, str(images), same, *option, str(tmp_path / "folder")])
    assert service.asked == []
