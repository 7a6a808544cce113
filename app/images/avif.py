"""AVIF, by Pillow's parser and decoder: libavif and dav1d."""

from typing import Any

from PIL import _avif
from PIL.AvifImagePlugin import AvifImageFile

DECODER = "dav1d"
THREADS = 1  # of one image, as for every other type; Pillow takes one for each core


class AvifImage(AvifImageFile):
    """Opened without Pillow's own `_open`, which reads all of Exif: 0.8 MB of it take six seconds.

    Exif is not needed: only the boxes irot and imir turn an AVIF (ISO/IEC 23000-22, 7.3.6), and libavif reads those.
    """

    orientation: int  # 1 to 8, numbered as in Exif

    def _open(self) -> None:
        assert self.fp is not None
        self._decoder: Any = _avif.AvifDecoder(self.fp.read(), DECODER, THREADS)
        self._size, self.n_frames, self._mode, _, _, self.orientation, _ = self._decoder.get_info()
        self.is_animated = self.n_frames > 1
        self.seek(0)

    def load(self) -> Any:
        access = super().load()
        self._decoder = None  # with the planes that the pixels were made from
        return access
