"""Writes prometheusrule.yaml: streamer.rules.yaml as a resource of the Prometheus Operator.

python k8s/base/alerts/make.py
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
RULES, OBJECT = HERE / "streamer.rules.yaml", HERE / "prometheusrule.yaml"
_HEAD = """\
# Generated from streamer.rules.yaml by make.py: edit the rules there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: streamer
spec:
"""


def made() -> str:
    """The groups as written, indented by two more spaces, without the comment above them."""
    lines = RULES.read_text(encoding="utf-8").splitlines()
    groups = lines[lines.index("groups:") :]
    return _HEAD + "".join(f"  {line}\n" if line else "\n" for line in groups)


if __name__ == "__main__":
    OBJECT.write_text(made(), encoding="utf-8")
