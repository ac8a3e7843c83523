"""The options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamer.privacy.terms import Domain, Method, Neighbours

_GUARANTEE = "The guarantee"
_PLANNING = "What is planned for"
_OUTPUT = "Output"

Epsilon = Annotated[
    float,
    typer.Option(help="ε: how much one user may change the odds.", rich_help_panel=_GUARANTEE),
]
Delta = Annotated[
    float, typer.Option(help="δ: the probability left out of it.", rich_help_panel=_GUARANTEE)
]
Contributions = Annotated[
    int,
    typer.Option(
        help="k: reports a user counts for in a period before falling silent.",
        rich_help_panel=_GUARANTEE,
    ),
]
NeighboursChoice = Annotated[
    Neighbours,
    typer.Option(
        "--neighbours", help="Which two worlds must look alike.", rich_help_panel=_GUARANTEE
    ),
]
Period = Annotated[
    int,
    typer.Option(
        help="Steps in a budget period; budgets start again after it.", rich_help_panel=_GUARANTEE
    ),
]
Calibration = Annotated[
    Method,
    typer.Option(
        "--calibration",
        help="Which analysis the noise comes from: ours, or the paper's constants.",
        rich_help_panel=_GUARANTEE,
    ),
]
Step = Annotated[
    float, typer.Option(help="Seconds in a step; only printed.", rich_help_panel=_PLANNING)
]
Beta = Annotated[
    float,
    typer.Option(
        help="β: the chance of any miss or false report in a period.", rich_help_panel=_PLANNING
    ),
]
ItemsCount = Annotated[
    int,
    typer.Option("--items", help="Distinct items in a step, at most.", rich_help_panel=_PLANNING),
]
DomainChoice = Annotated[
    Domain,
    typer.Option(
        "--domain",
        help="open: items as they come, as in the service; declared: all are known before.",
        rich_help_panel=_PLANNING,
    ),
]
Threshold = Annotated[
    int | None,
    typer.Option(help="A threshold by hand instead of the planned one.", rich_help_panel=_PLANNING),
]
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
