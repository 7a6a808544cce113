"""The sentence on the crop: how much of an image it leaves, and which settings show the whole image."""

from model.preprocessing import Preprocessing

MOST = 0.95  # of an image; less of it is worth a word


def about_crop(preprocessing: Preprocessing, seen: float) -> str:
    """A sentence on the mean share `seen` of images that the crop leaves, or none."""
    if preprocessing.crop == "none" or seen >= MOST:
        return ""
    height, width = preprocessing.cropped
    whole = f"--set crop=none --set resize_mode=squash --set resize_size={height},{width}"
    return (
        f"The crop leaves on average {100 * seen:.0f} % of an image; {whole} sees all of it, squashed and smaller. "
        "Where what you look for is small, that can be worse; compare with a larger --image-size N."
    )
