"""A day that a real service would have, as it was reported by 0.1.0 and as it is by default.

    python docs/pictures/day.py

writes day.png beside this file, and what was measured to standard output.
"""

import sys
from pathlib import Path

from streamer.experiments.real_day import compare_rules
from streamer.fleet.day import day_fleet
from streamer.plots import draw_day
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.randomness import SeededBytes

guarantee = Guarantee(epsilon=1.0, delta=1e-6, contributions=10)
fleet = day_fleet(1)
rows = compare_rules(fleet, guarantee, SeededBytes(1))
for row in rows:
    sys.stdout.write(f"{row.name}, threshold {row.threshold}: {row.result}\n")
draw_day(fleet, rows, guarantee, Path(__file__).with_name("day.png"))
