"""Who is let in: a bound on images, and on how long the next one would wait.

How long that is can be learned from those that were let in: each had so many images ahead of it and took so long. The
sums of both, older ones fading, give the seconds that an image ahead costs, with decoding, several cores and all that
competes for them in it; the first guess is the engine's own measurement.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import Overloaded, ServiceError, Unavailable
from app.lifecycle import Lifecycle

FADING = 0.95  # of what has been learned, with every answer
ALWAYS = 2  # images, one in the engine and one being decoded, for which there is never a wait to speak of


class Admission:
    """Places for images, held from before they are decoded until they are answered. Belongs to the event loop."""

    def __init__(self, *, max_images: int, max_wait_s: float, image_s: float, lifecycle: Lifecycle) -> None:
        """`image_s`: seconds an image, as far as is known at the start."""
        self._max_images = max_images
        self._max_wait_s = max_wait_s
        self._lifecycle = lifecycle
        self._seconds = image_s
        self._ahead = 1.0
        self.images = 0  # in work or waiting

    @property
    def image_s(self) -> float:
        """Seconds that each image ahead makes the next one wait."""
        return self._seconds / self._ahead

    def refusal(self, images: int = 1, *, deadline: float = math.inf) -> ServiceError | None:
        """Why so many images would not be let in now. Cheap enough to ask before a body is read.

        `deadline` is in seconds of time.monotonic. With hardly anything in work nobody is refused because of a
        prediction: a wrong one would never be corrected. Nor is anybody because the service drains: who comes then had
        begun before, and all others find the port closed.
        """
        if failure := self._lifecycle.failure:
            return Unavailable(failure)
        if self.images + images > self._max_images:
            return Overloaded("Too many images are waiting. Send this request again in a moment.")
        if self.images < ALWAYS:
            return None
        wait = self.images * self.image_s
        if wait > self._max_wait_s:
            return Overloaded("The wait would be too long. Send this request again in a moment.")
        if time.monotonic() + wait + images * self.image_s > deadline:
            return Overloaded("The answer would come too late for this request. Send it again in a moment.")
        return None

    @contextmanager
    def admit(self, images: int, *, deadline: float = math.inf) -> Iterator[Callable[[], None]]:
        """Hold places for `images`. Call what it gives when the model has answered, so that the wait is learned from.

        Raises Overloaded or Unavailable at once: a full queue is an answer, not a wait.
        """
        if refusal := self.refusal(images, deadline=deadline):
            raise refusal
        self.images += images
        ahead, start = self.images, time.monotonic()

        def answered() -> None:
            self._seconds = FADING * self._seconds + time.monotonic() - start
            self._ahead = FADING * self._ahead + ahead

        try:
            yield answered
        finally:
            self.images -= images
