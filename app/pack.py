"""`python -m app.pack`: pack the weights of VIT_BUNDLE into VIT_CACHE for this machine's processor, and end.

For an image, which cannot be written when it runs. The service does the same at its first start where it can.
"""

import logging

from app.bundle import load_bundle
from app.inference.cpu import pack
from app.inference.device import packed_weights
from app.settings import Settings


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings()
    weights = packed_weights(settings, load_bundle(settings.bundle))
    if not weights or not weights.find(pack):
        raise SystemExit(f"The weights were not packed into {settings.cache}")


if __name__ == "__main__":
    main()
