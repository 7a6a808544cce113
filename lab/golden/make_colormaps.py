"""Writes app/drawing/colormaps.png from matplotlib: `python lab/golden/make_colormaps.py` (needs matplotlib)."""

from pathlib import Path
from typing import get_args

import matplotlib
import numpy as np
from PIL import Image

from app.drawing.colors import COLORMAPS, Colormap

OTHERWISE_NAMED = {"rdbu": "RdBu_r"}  # blue below zero, as weather maps have it

maps = (matplotlib.colormaps[OTHERWISE_NAMED.get(name, name)] for name in get_args(Colormap))
rows = [colormap(np.arange(256), bytes=True)[:, :3] for colormap in maps]
Image.fromarray(np.stack(rows)).save(COLORMAPS, optimize=True)
print(f"{Path(COLORMAPS).name}: {len(rows)} colormaps")
