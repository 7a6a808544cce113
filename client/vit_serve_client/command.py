"""The command: it sends images, writes what is answered, and says how that went."""

import argparse
import os
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from heapq import nsmallest
from pathlib import Path

from vit_serve_client import parquet
from vit_serve_client.bulk import Bulk, GivenUp, failed
from vit_serve_client.client import Answer, Client, ServiceProblem
from vit_serve_client.files import base, image_files
from vit_serve_client.mirror import Mirror
from vit_serve_client.npy import npy
from vit_serve_client.options import parser
from vit_serve_client.output import OtherRun, Output
from vit_serve_client.progress import Progress, printable, tell
from vit_serve_client.vectors import Vectors

LEAST_S = 5.0  # for an answer, whatever the patience
LISTED = 10  # labels with their counts at the end
SOME_FAILED, GAVE_UP, INTERRUPTED = 1, 2, 130  # exit statuses; the last as of programs that SIGINT ends
# Statuses that say something of the image. After any other the next run sends the image again: after 413, the limit of
# the service or of a proxy may have been raised.
LASTING = {400, 415, 422}
KEY_REFUSED = "the service does not take this API key"
HINTS = {
    401: "the service wants an API key: give it with --key or VIT_API_KEY",
    404: "the service has no such path: check its address",
}


def main(arguments: list[str], *, program: str = "vit-serve-client") -> int:
    options = parser(program).parse_args(arguments)
    made = [copies[1] for copies in (options.least_sure, options.least_familiar) if copies]
    made += [options.maps] if options.maps else []
    try:
        images = _of_part(image_files(options.images, stdin=sys.stdin.buffer, made=made), *options.part)
        places = [path for path in (options.out, options.embeddings, options.patches) if path]
        if len({os.path.realpath(path) for path in places}) < len(places):
            raise ValueError("--out, --embeddings and --patches cannot have one place: give others")
        for path in filter(parquet.is_wanted, places):
            parquet.check(path, images)
        output = Output(options.out, no_formulas=options.no_formulas)
    except (OSError, ValueError) as error:
        sys.exit(printable(f"not started: {error}"))
    try:
        with closing(output):
            return _run(options, images, output)
    except KeyboardInterrupt:
        done = sum(image in output.best for image in images)
        again = ". The same command goes on from here" if options.out else ""
        tell(f"interrupted: {done:,} of {len(images):,} images done{again}")
        return INTERRUPTED
    except OtherRun as other:
        sys.exit(printable(f"not started: {other}"))
    except (GivenUp, OSError, ServiceProblem) as stopped:
        reason = str(stopped)
        if isinstance(stopped, ServiceProblem) and (hint := HINTS.get(stopped.problem.status)):
            reason = f"{KEY_REFUSED if options.key and stopped.problem.status == 401 else hint} ({stopped})"
    tell(f"given up: {reason}")
    return GAVE_UP


def _run(options: argparse.Namespace, images: list[str], output: Output) -> int:
    """The exit status. Raises OtherRun, GivenUp, ServiceProblem and OSError."""
    root, vectors = base(options.images), None
    maps = Mirror(options.maps, root, ".png") if options.maps else None
    in_one_file = parquet.is_wanted(options.embeddings)
    embeddings = Mirror(options.embeddings, root, ".npy") if options.embeddings and not in_one_file else None
    patches = Mirror(options.patches, root, ".npy") if options.patches else None
    mirrors = [mirror for mirror in (maps, embeddings, patches) if mirror]
    for mirror in mirrors:
        _check(mirror, output, images)
    for _, folder in filter(None, (options.least_sure, options.least_familiar)):
        _check_places(Mirror(folder, root, ""), images)
    deadline_s = max(options.patience, LEAST_S)
    with Client(options.server, key=options.key, deadline_s=deadline_s) as client, ExitStack() as stack:
        bulk = Bulk(
            client,
            patience_s=options.patience,
            waiting=lambda matter: tell(
                f"{options.server} {matter} It is asked again for {options.patience:g} seconds"
            ),
            top_k=options.top_k,
            maps=maps,
            method=options.method,
            embedding=bool(options.embeddings),
            patches=patches,
            unfamiliar=options.unfamiliar,
            least_familiarity=options.least_familiarity,
            labels=options.labels,
            prompt=options.prompt,
        )
        manifest = bulk.model.manifest
        if options.least_sure and not bulk.kinds:
            raise OtherRun("--least-sure is for models with labels")
        for name in () if manifest.familiarity else ("least_familiar", "unfamiliar", "least_familiarity"):
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise OtherRun(f"{option} is for models that know their images, and this one does not")
        output.begin(bulk.model, labels=max(1, min(options.top_k, bulk.kinds)))
        if in_one_file:
            vectors = stack.enter_context(closing(Vectors(options.embeddings, length=manifest.features)))
            vectors.begin(output.named())
        for mirror in mirrors:
            mirror.folder.mkdir(parents=True, exist_ok=True)
        left = [image for image in images if image not in output.best]
        try:
            with Progress(len(images), done=len(images) - len(left)) as progress:

                def record(image: str, result: Answer) -> None:
                    if embeddings and not result.error and not embeddings.write(image, npy(result.embedding)):
                        result = failed("No embedding", "Its embedding can have no such name here.")
                    if result.error:
                        tell(f"{image}: {result.error.detail}")
                    elif vectors:
                        vectors.write(image, result.embedding)
                    if not result.error or result.error.status in LASTING:
                        output.write(image, result)
                    progress.step(refusals=bulk.refusals)

                bulk.run(left, record, concurrency=options.concurrency)
        finally:
            if bulk.refusals:
                tell(f"{options.server} was too busy for {bulk.refusals:,} requests, which were sent again")
        if vectors:
            vectors.finish(output.named())
        output.finish()
        scores = {image: best.score for image, best in output.best.items() if best}
        for what, copies, numbers in (
            ("least sure: {} in {}, with scores up to {:.2g}", options.least_sure, scores),
            ("least familiar: {} in {}, with familiarity up to {:.2g}", options.least_familiar, output.familiarity),
        ):
            if not copies:
                continue
            count, folder = copies
            least = nsmallest(count, filter(numbers.__contains__, images), key=numbers.__getitem__)
            _copy(bulk, least, folder, root, concurrency=options.concurrency)
            if least:
                tell(what.format(len(least), folder, numbers[least[-1]]))
    return _outcome(options, images, output, sent=len(left))


def _check(mirror: Mirror, output: Output, images: list[str]) -> None:
    """Raises OtherRun unless it has the files of earlier runs, and as _check_places."""
    if not all(mirror.path(image).exists() for image in output.named()):
        raise OtherRun(f"the output has images that {mirror.folder} does not have: give another --out")
    _check_places(mirror, [*output.best, *images])


def _check_places(mirror: Mirror, images: list[str]) -> None:
    """Raises OtherRun unless each image has a place of its own."""
    if pair := mirror.pair(images):
        raise OtherRun(f"{' and '.join(pair)} would have the same file in {mirror.folder}: send them in two runs")


def _outcome(options: argparse.Namespace, images: list[str], output: Output, *, sent: int) -> int:
    """Tells it, and gives the exit status."""
    bests = [output.best.get(image) for image in images]
    unusable = bests.count(None)
    if not images:
        tell("no image is of this --part")
    elif not sent:
        counts = f"{len(images) - unusable} named, {unusable} unusable"
        tell(f"{len(images)} already in {options.out} ({counts}); none was left to send")
    elif unusable:
        tell(f"{unusable} of {len(images)} images could not be used")
    if labels := Counter(best.label for best in bests if best and best.label):
        tell(f"labels: {_listed(labels)}")
    return SOME_FAILED if unusable else 0


def _copy(bulk: Bulk, images: Sequence[str], folder: Path, root: Path, *, concurrency: int) -> None:
    """Each image, and its heatmap beside it."""
    copies = Mirror(folder, root, "")

    def copy(image: str, result: Answer) -> None:
        if result.error:
            tell(f"{image}: {result.error.detail}")
        copies.copy(image)

    replace(bulk, maps=Mirror(folder, root, ".png"), embedding=False, patches=None).run(
        images, copy, concurrency=concurrency
    )


def _listed(labels: Counter[str]) -> str:
    most = [f"{count:,} {label}" for label, count in labels.most_common(LISTED)]
    rest = [count for _, count in labels.most_common()[LISTED:]]
    return ", ".join(most + ([f"{sum(rest):,} with {len(rest):,} other labels"] if rest else []))


def _of_part(images: list[str], part: int, parts: int) -> list[str]:
    return [image for image in images if zlib.crc32(os.fsencode(image)) % parts == part]
