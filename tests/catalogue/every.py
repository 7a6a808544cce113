"""All inputs by name."""

from tests.catalogue import avifs, bmps, foreign, gifs, jpegs, pngs, tiffs, webps
from tests.catalogue.case import Case

CASES: dict[str, Case] = {
    case.name: case for kind in (jpegs, pngs, webps, gifs, bmps, tiffs, avifs, foreign) for case in kind.cases()
}
