"""Options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from streamer.commands.setting_flags import setting_option
from streamer.privacy.terms import Attention, Domain, Method, Neighbours
from streamer.settings import PrivacySettings, StreamSettings

_GUARANTEE = "Guarantee"
_PLANNING = "Workload"
_OUTPUT = "Output"

# The commands use the defaults of the service. They are not validated here, because building
# the validators takes longer than reading the declarations.
PRIVACY: Final = PrivacySettings.model_construct()
STREAM: Final = StreamSettings.model_construct()

Epsilon = Annotated[float, setting_option(PrivacySettings, "epsilon", _GUARANTEE)]
Delta = Annotated[float, setting_option(PrivacySettings, "delta", _GUARANTEE)]
Contributions = Annotated[int, setting_option(PrivacySettings, "contributions", _GUARANTEE)]
NeighboursChoice = Annotated[Neighbours, setting_option(PrivacySettings, "neighbours", _GUARANTEE)]
Period = Annotated[int, setting_option(PrivacySettings, "period_steps", _GUARANTEE)]
Calibration = Annotated[Method, setting_option(PrivacySettings, "calibration", _GUARANTEE)]
AttentionChoice = Annotated[
    Attention | None, setting_option(PrivacySettings, "attention", _GUARANTEE)
]
Step = Annotated[
    float, typer.Option(help="Length of a step in seconds.", rich_help_panel=_PLANNING)
]
Beta = Annotated[float, setting_option(PrivacySettings, "beta", _PLANNING)]
ItemsCount = Annotated[int, setting_option(PrivacySettings, "items", _PLANNING)]
ItemsPerStep = Annotated[int, setting_option(StreamSettings, "items_per_step", _PLANNING)]
Declared = Annotated[
    int,
    typer.Option(
        help="How many items are declared: asked about in every step, at a lower threshold.",
        rich_help_panel=_PLANNING,
    ),
]
Users = Annotated[int, setting_option(PrivacySettings, "users", _PLANNING)]
DomainChoice = Annotated[
    Domain,
    typer.Option(
        help="open: any item may occur; declared: only items that are known in advance, as with "
        "privacy.open_domain false.",
        rich_help_panel=_PLANNING,
    ),
]
Threshold = Annotated[int | None, setting_option(PrivacySettings, "threshold", _PLANNING)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=_OUTPUT)
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Save a plot to this file (.png, .svg, .pdf).", rich_help_panel=_OUTPUT),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Make the run reproducible. Never use for real data.", rich_help_panel=_OUTPUT
    ),
]
