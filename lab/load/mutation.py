"""`python -m lab.load.mutation [SECONDS] [SEED]`: valid images with changed bytes, sent to a real server.

An image that gets anything but 200, 415 or 422, or that ends a decoder, is kept in `lab/load/found/`.
"""

import random
import sys
import time
from collections import Counter

import httpx

from lab.load.changes import changed, keep
from lab.load.server import status_of
from tests.catalogue.every import CASES
from tests.support.server import family, running

SECONDS = 600.0
EXPECTED = {200, 415, 422}
MOST_BYTES = 100_000  # of an image that is changed
TOKENS = [b"\0", b"\1", b"\x7f", b"\x80", b"\xff"]  # the ends of what a byte can say


def main() -> None:
    seconds = float(sys.argv[1]) if sys.argv[1:] else SECONDS
    chance = random.Random(int(sys.argv[2]) if sys.argv[2:] else 0)
    made = [case.make() for case in CASES.values() if case.statuses == {200}]
    valid = [data for data in made if len(data) <= MOST_BYTES]
    answers: Counter[int] = Counter()  # 0: none
    lost = 0
    with running() as server, httpx.Client(base_url=server.url, timeout=60) as client:
        before, processes = server.anonymous_mib(), set(family(server.pid))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            image = chance.choice(valid)
            data = changed(image, chance, tokens=TOKENS, head=len(image))
            answer = status_of(client, data, "/classify?attention=false")
            answers[answer] += 1
            now = set(family(server.pid)) if answer == 422 else processes
            if answer not in EXPECTED or now != processes:
                lost += now != processes
                keep(data)
                processes = now
        after = server.anonymous_mib()
        print(f"{sum(answers.values())} images in {seconds:g} s: {dict(answers)}; decoders lost: {lost}")
        print(f"allocated {before:.1f} MiB, then {after:.1f}; same process: {server.poll() is None}")
    sys.exit(bool(answers.keys() - EXPECTED))


if __name__ == "__main__":
    main()
