"""From the bytes of an upload to what the network gets, by way of a process that decodes."""

from app.errors import Overloaded, ServiceError, UnsupportedType, UnusableImage
from app.images.decode import NotAccepted, Refused
from app.images.pool import DecoderFailed, DecoderHung, Decoders
from app.images.preparer import GarbledAnswer, Larger, Prepared, pack, unpack
from app.images.quarantine import Quarantine

LARGE_PIXELS = 4_000_000  # a picture of more is decoded in a tenth of a second and not in milliseconds


class Intake:
    """A picture is sent as a small one; where it turns out to be large it is sent again with its weight."""

    def __init__(
        self, *, decoders: Decoders, quarantine: Quarantine, input_size: tuple[int, int], max_pixels: int
    ) -> None:
        """`input_size` is the height and width that the network takes."""
        self._decoders = decoders
        self._quarantine = quarantine
        self._input_size = input_size
        self._max_pixels = max_pixels

    async def prepare(self, data: bytes, *, thumbnail: bool) -> Prepared:
        """Raises UnsupportedType or UnusableImage, and Overloaded when no decoder can be started."""
        if await self._quarantine.holds(data):
            raise UnusableImage("This image broke a decoder a moment ago.")
        try:
            done = await self._ask(data, thumbnail=thumbnail, max_pixels=LARGE_PIXELS, weight=0)
            if isinstance(done, Larger):
                done = await self._ask(data, thumbnail=thumbnail, max_pixels=self._max_pixels, weight=done.pixels)
            if isinstance(done, Larger):
                raise GarbledAnswer
        except Refused as refusal:
            raise _told(refusal) from None
        except (DecoderFailed, GarbledAnswer) as failure:
            await self._quarantine.add(data)
            hung = isinstance(failure, DecoderHung)
            raise UnusableImage(
                "Decoding this image takes too long." if hung else "This image broke the decoder."
            ) from None
        except OSError:
            raise Overloaded("No image can be decoded at the moment. Send this request again in a moment.") from None
        return done

    async def _ask(self, data: bytes, *, thumbnail: bool, max_pixels: int, weight: int) -> Prepared | Larger:
        request = pack(data, thumbnail=thumbnail, max_pixels=min(max_pixels, self._max_pixels))
        return unpack(await self._decoders.run(request, weight=weight), shape=self._input_size)


def _told(refusal: Refused) -> ServiceError:
    return UnsupportedType(refusal.detail) if isinstance(refusal, NotAccepted) else UnusableImage(refusal.detail)
