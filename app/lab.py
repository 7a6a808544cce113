"""CIELAB to sRGB, as a TIFF has it (D50, 8 bits). Pillow leaves it to colour profiles, which we do not parse."""

import numpy as np
import numpy.typing as npt

_WHITE_D50 = np.array([0.9642, 1.0, 0.8249], np.float32)
_XYZ_D50_TO_LINEAR = np.array(  # sRGB's primaries, adapted by Bradford's method (Lindbloom, "RGB/XYZ Matrices")
    [[3.1338561, -1.6168667, -0.4906146], [-0.9787684, 1.9161415, 0.0334540], [0.0719453, -0.2289914, 1.4052427]],
    np.float32,
)


def srgb(lab: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """`lab` (..., 3) as a TIFF has it: L of 100 is 255; a and b are signed. Formulas of CIE 15:2004."""
    lightness = (lab[..., 0].astype(np.float32) * (100 / 255) + 16) / 116
    green_red, blue_yellow = (lab[..., i].astype(np.int8).astype(np.float32) for i in (1, 2))
    bent = np.stack([lightness + green_red / 500, lightness, lightness - blue_yellow / 200], -1)
    xyz = np.where(bent > 6 / 29, bent**3, (bent - 16 / 116) * (108 / 841)) * _WHITE_D50
    linear = np.clip(xyz @ _XYZ_D50_TO_LINEAR.T, 0, 1)
    encoded = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)
    pixels: npt.NDArray[np.uint8] = np.rint(255 * encoded).astype(np.uint8)
    return pixels
