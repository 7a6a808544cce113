"""Which requests are accepted: a bound on the images in work, and on the predicted wait.

The prediction is learned from the images accepted before. Each had a number of images ahead of it and took some time.
The sum of the times divided by the sum of the numbers gives the seconds that each image ahead costs. They include
decoding, and they are fewer on several cores and more when other work uses these. Each new image makes the older ones
count less. The first guess is the engine's own measurement. One image counts as at most MOST_RATIO times what was
expected of it: the machine may have been paused meanwhile.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import MalformedRequest, Overloaded, ServiceError, Unavailable
from app.lifecycle import Lifecycle

DECAY = 0.95  # of both sums, with every answer
MOST_RATIO = 2.0
MIN_IMAGES_AHEAD = 2  # for a prediction; with one image in the engine and one in a decoder there is hardly a wait


class Admission:
    """Counts images from before they are decoded until they are answered. Belongs to the event loop."""

    def __init__(self, *, max_images: int, max_wait_s: float, image_s: float, lifecycle: Lifecycle) -> None:
        """`image_s` is the first guess of the seconds that an image takes."""
        self._max_images = max_images
        self._max_wait_s = max_wait_s
        self._lifecycle = lifecycle
        self._sum_seconds = image_s
        self._sum_ahead = 1.0
        self.images = 0  # in work or waiting

    @property
    def image_s(self) -> float:
        """Seconds that each image ahead makes the next one wait."""
        return self._sum_seconds / self._sum_ahead

    def refusal(self, images: int = 1, *, deadline: float = math.inf) -> ServiceError | None:
        """The error that this many more images would get now, or None. Cheap: it is also called before a body is read.

        `deadline` is in seconds of time.monotonic. With fewer than MIN_IMAGES_AHEAD images in work the prediction
        refuses nothing: a wrong one would never be corrected. Draining refuses nothing here either: the requests that
        still come began before it, and the port is closed to others.
        """
        if failure := self._lifecycle.failure:
            return Unavailable(failure)
        if images > self._max_images:
            return MalformedRequest(f"The request has too many images: send at most {self._max_images}.")
        wait_s = self.images * self.image_s
        if self.images + images > self._max_images:
            return Overloaded("Too many images are waiting. Send this request again in a moment.", wait_s=wait_s)
        if self.images < MIN_IMAGES_AHEAD:
            return None
        if wait_s > self._max_wait_s:
            return Overloaded("The wait would be too long. Send this request again in a moment.", wait_s=wait_s)
        if time.monotonic() + wait_s + images * self.image_s > deadline:
            late = "The answer would miss this request's deadline. Send it again in a moment."
            return Overloaded(late, wait_s=wait_s)
        return None

    @contextmanager
    def admit(self, images: int, *, deadline: float = math.inf) -> Iterator[Callable[[], None]]:
        """Count `images` as accepted. Call the function that it yields when the model has answered: it learns the wait.

        Raises MalformedRequest, Overloaded or Unavailable at once, without waiting for a place.
        """
        if refusal := self.refusal(images, deadline=deadline):
            raise refusal
        self.images += images
        ahead, start = self.images, time.monotonic()

        def answered() -> None:
            seconds = min(time.monotonic() - start, MOST_RATIO * ahead * self.image_s)
            self._sum_seconds = DECAY * self._sum_seconds + seconds
            self._sum_ahead = DECAY * self._sum_ahead + ahead

        try:
            yield answered
        finally:
            self.images -= images
