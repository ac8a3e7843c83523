"""The library's public names are exactly those that `streamer` exports."""

import doctest
import types

import streamer


def test_the_public_api_is_what_the_package_exports():
    assert streamer.__all__ == sorted(streamer.__all__)
    public = {
        name
        for name, value in vars(streamer).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public == set(streamer.__all__)


def test_the_public_api_has_these_names():
    assert set(streamer.__all__) == {
        *("Guarantee", "Neighbours", "Method", "Domain", "Workload", "Plan", "plan"),
        *("Calibration", "calibrate", "NoiseLaw", "DiscreteLaplace", "Attention", "Intervals"),
        *("AboveThreshold", "ThresholdMonitor", "ThresholdMonitorEvolving", "Answer"),
        *("ShiftingHeavyHitters", "Hitter", "HeavyHitterMonitor", "Tally", "Decision"),
        *("StreamerError", "SettingError", "OutputError", "MonitorError"),
    }


def test_the_example_in_the_package_docstring_runs():
    assert doctest.testmod(streamer).failed == 0
