"""Find heavy hitters in a live event stream with user-level differential privacy.

The library behind the service: plan a guarantee, then run one of the paper's monitors.

    >>> from streamer import Guarantee, HeavyHitterMonitor, Workload, plan
    >>> planned = plan(Guarantee(epsilon=1, delta=1e-6, contributions=10),
    ...                Workload(period_steps=1440, items=100_000, beta=0.05,
    ...                         users=1_000_000))
    >>> planned.threshold
    492
    >>> monitor = HeavyHitterMonitor(planned)
"""

from streamer.errors import MonitorError, OutputError, SettingError, StreamerError
from streamer.monitors.above_threshold import AboveThreshold
from streamer.monitors.heavy_hitters import HeavyHitterMonitor
from streamer.monitors.seam import Decision, Hitter, Tally
from streamer.monitors.shifting import ShiftingHeavyHitters
from streamer.monitors.threshold_monitor import (
    Answer,
    ThresholdMonitor,
    ThresholdMonitorEvolving,
)
from streamer.privacy.calibration import Calibration, calibrate
from streamer.privacy.guarantee import Guarantee
from streamer.privacy.interval import Intervals
from streamer.privacy.law import NoiseLaw
from streamer.privacy.noise import DiscreteLaplace
from streamer.privacy.terms import Attention, Domain, Method, Neighbours
from streamer.privacy.threshold import Plan, Workload, plan

__version__ = "0.1.0"

__all__ = [
    "AboveThreshold",
    "Answer",
    "Attention",
    "Calibration",
    "Decision",
    "DiscreteLaplace",
    "Domain",
    "Guarantee",
    "HeavyHitterMonitor",
    "Hitter",
    "Intervals",
    "Method",
    "MonitorError",
    "Neighbours",
    "NoiseLaw",
    "OutputError",
    "Plan",
    "SettingError",
    "ShiftingHeavyHitters",
    "StreamerError",
    "Tally",
    "ThresholdMonitor",
    "ThresholdMonitorEvolving",
    "Workload",
    "calibrate",
    "plan",
]
