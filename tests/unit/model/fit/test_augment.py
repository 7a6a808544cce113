"""model/fit/augment.py: crops show what lies there, at every place and of every allowed size."""

import pytest
import torch

from model.fit.augment import Augmentation, augmented

WHOLE = Augmentation(least_area=1, most_aspect=1, flip=False)
SIZE = (32, 48)


def places(count: int, size: tuple[int, int] = SIZE) -> torch.Tensor:
    """Images whose red is the column and whose green is the row."""
    height, width = size
    pixels = torch.zeros(count, height, width, 3, dtype=torch.uint8)
    pixels[..., 0], pixels[..., 1] = torch.arange(width), torch.arange(height)[:, None]
    return pixels


def chance() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_flips_are_left_to_right_for_half_of_the_images():
    pixels = places(200)
    shown = augmented(pixels, SIZE, Augmentation(least_area=1, most_aspect=1, flip=True), chance())
    mirrored = shown[:, 0, 0, 0] > SIZE[1] / 2
    assert 70 < mirrored.sum() < 130
    torch.testing.assert_close(shown[mirrored].flip(3), shown[~mirrored][:1].expand(int(mirrored.sum()), -1, -1, -1))


def test_crops_have_every_size_and_place_and_keep_within_their_limits():
    augmentation = Augmentation(least_area=0.25, most_aspect=2, flip=False)
    shown = augmented(places(2000), (16, 16), augmentation, chance())
    # Centres of the outer pixels are a sixteenth of the crop inside its edges.
    width, height = ((shown[:, c, -1, -1] - shown[:, c, 0, 0]) * 16 / 15 for c in (0, 1))
    across, along = width / SIZE[1], height / SIZE[0]
    inside = (across < 0.97) & (along < 0.97)  # others were cut at the edge of the image
    area, aspect = (across * along)[inside], (across / along)[inside]
    assert 0.24 < area.min() < 0.27
    assert 0.49 < aspect.min() < 0.55
    assert 1.85 < aspect.max() < 2.04
    assert max(across.max(), along.max()) < 1.01
    left = shown[:, 0, 0, 0] / SIZE[1]
    assert left.min() < 0.05
    assert left.max() > 0.5


def test_an_image_larger_than_the_input_is_shrunk():
    shown = augmented(places(1, (64, 96)), SIZE, WHOLE, chance())
    torch.testing.assert_close(shown[0, 0, 5], 2 * torch.arange(48) + 0.5, atol=1e-3, rtol=0)
    torch.testing.assert_close(shown[0, 1, :, 5], 2 * torch.arange(32) + 0.5, atol=1e-3, rtol=0)


@pytest.mark.parametrize(("name", "value"), [("least_area", 0), ("most_aspect", 0.5)])
def test_shares_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Augmentation(**{name: value})
