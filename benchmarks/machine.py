"""The machine and the versions that figures were measured with."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks.quix import VERSION as QUIX
from tests.kafka.broker import CACHE

_PACKAGES = ("streamer", "aiokafka", "cryptography", "msgspec", "numpy", "xxhash")


def machine() -> dict[str, object]:
    return {
        "processor": _first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gb": round(int(_first("/proc/meminfo", "MemTotal").split()[0]) / 1e6),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "kafka": CACHE.name.removeprefix("kafka-"),
        "quixstreams": QUIX,
    }


def _first(file: str, field: str) -> str:
    lines = Path(file).read_text().splitlines()
    return next(line for line in lines if line.startswith(field)).partition(":")[2].strip()
