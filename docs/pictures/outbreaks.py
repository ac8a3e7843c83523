"""The smallest outbreak that is found, before and after.

    python docs/pictures/outbreaks.py

writes outbreaks.png beside this file, and what was measured to standard output.
"""

import sys
from pathlib import Path

import numpy as np

from streamer.experiments.smallest_outbreak import smallest_outbreaks
from streamer.plots import draw_outbreaks
from streamer.privacy.guarantee import Guarantee

guarantee = Guarantee(epsilon=1.0, delta=1e-6, contributions=10)
measured = smallest_outbreaks(guarantee, np.random.default_rng(1))
for smallest in measured:
    sys.stdout.write(f"{smallest.method}, {smallest.period_steps} steps: {smallest.users} users\n")
draw_outbreaks(measured, guarantee, Path(__file__).with_name("outbreaks.png"))
