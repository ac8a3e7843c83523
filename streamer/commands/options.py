"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from streamer.commands.setting_flags import setting_option
from streamer.privacy.terms import Domain, Method, Neighbours
from streamer.settings import PrivacySettings, StreamSettings

_GUARANTEE = "The guarantee"
_PLANNING = "What is planned for"
_OUTPUT = "Output"

# The defaults of the service are those of the commands, too. They are not validated here: that
# would build the validators, which takes longer than reading the declarations.
PRIVACY: Final = PrivacySettings.model_construct()
STREAM: Final = StreamSettings.model_construct()

Epsilon = Annotated[float, setting_option(PrivacySettings, "epsilon", _GUARANTEE)]
Delta = Annotated[float, setting_option(PrivacySettings, "delta", _GUARANTEE)]
Contributions = Annotated[int, setting_option(PrivacySettings, "contributions", _GUARANTEE)]
NeighboursChoice = Annotated[Neighbours, setting_option(PrivacySettings, "neighbours", _GUARANTEE)]
Period = Annotated[int, setting_option(PrivacySettings, "period_steps", _GUARANTEE)]
Calibration = Annotated[Method, setting_option(PrivacySettings, "calibration", _GUARANTEE)]
Step = Annotated[
    float, typer.Option(help="Seconds in a step; only printed.", rich_help_panel=_PLANNING)
]
Beta = Annotated[float, setting_option(PrivacySettings, "beta", _PLANNING)]
ItemsCount = Annotated[int, setting_option(PrivacySettings, "items", _PLANNING)]
DomainChoice = Annotated[
    Domain,
    typer.Option(
        help="open: items as they come, as in the service; declared: all are known before.",
        rich_help_panel=_PLANNING,
    ),
]
Threshold = Annotated[int | None, setting_option(PrivacySettings, "threshold", _PLANNING)]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=_OUTPUT)
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw a picture into this file (.png, .svg, .pdf).", rich_help_panel=_OUTPUT),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Make the run repeatable. Never for real data.", rich_help_panel=_OUTPUT),
]
