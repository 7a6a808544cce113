"""One run: from a bundle and a folder of images to the table in the bundle, and the page beside it."""

from dataclasses import dataclass
from pathlib import Path

from app.bundle import load_bundle
from app.maps.judgement import FILE, Judgement
from export.folder import evenly, image_files
from export.judge.areas import STEPS
from export.judge.images import judged
from export.judge.page import page
from export.judge.table import begin, sentence, table
from export.messages import warn
from model.durable import replacing

FEWEST = 2  # images: of one there is no standard error


@dataclass(frozen=True, kw_only=True)
class Judged:
    judgement: Judgement
    table: Path
    page: Path


def run(bundle: Path, images: Path, masks: Path | None, *, limit: int) -> Judged:
    """Raises CannotStart, ServiceError, OSError and ValueError."""
    opened = load_bundle(bundle)
    files = chosen(images, limit)
    found = judged(bundle, files, masks) if len(files) >= FEWEST else []
    if len(found) < FEWEST:
        raise ValueError(f"--images {images}: {len(found)} images can be used, and {FEWEST} are needed")
    if masks and all(image.on_object is None for image in found):
        warn(f"--masks {masks}: it shows the object of none of these images")
    maps = table(found)
    judgement = Judgement(
        digest=opened.digest,
        says=sentence(maps, len(found)),
        begin=begin(maps),
        images=len(found),
        steps=STEPS,
        maps=maps,
    )
    place = bundle.resolve()
    written = Judged(judgement=judgement, table=bundle / FILE, page=place.with_name(f"{place.name}.judged.html"))
    shown = page(opened.manifest.name, judgement, found)
    for path, text in ((written.table, judgement.model_dump_json(indent=1) + "\n"), (written.page, shown)):
        with replacing(path) as new:
            new.write_text(text, encoding="utf-8")
    return written


def chosen(folder: Path, limit: int) -> dict[Path, Path]:
    """At most `limit` images in a folder and in folders below it, by their names in it, chosen evenly in the order of
    names. stderr says what is skipped.
    """
    files = image_files(folder)
    return {file.relative_to(folder): file for file in evenly(files, limit)}
