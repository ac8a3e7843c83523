"""The same as the live view in plain lines, for pipes and logs: one for each report."""

from __future__ import annotations

from collections.abc import Callable

from streamer.terminal.scene import Scene, visible

_TRUTH = "ground truth of this simulation: outbreak of"


class PlainView:
    """Tells what is new in a scene, once."""

    def __init__(self, scene: Scene, tell: Callable[[str], None]) -> None:
        self._scene, self._tell = scene, tell
        self._trouble = ""
        self._guarantee: list[str] = []
        self._through: int | None = None
        self._busy = False
        self._outbreaks: frozenset[str] = frozenset()
        self._begun = False

    def draw(self) -> None:
        self._tell_state()
        self._tell_truth()
        scene = self._scene
        if not scene.steps:
            self._through = None  # another stream may follow, with steps before those we know
        for step in scene.steps:
            if self._through is not None and step.step <= self._through:
                continue
            self._through = step.step
            for result in step.results:
                self._tell(
                    f"{step.end[11:19]} UTC  {result.estimate:>9,} ± {result.margin:<5,}  "
                    f"{visible(result.item)}"
                )
        if scene.current is not None and scene.current.end is not None:
            if self._busy and not scene.current.hitters:
                self._tell(f"{scene.current.end[11:19]} UTC  nothing is reported any more")
            self._busy = bool(scene.current.hitters)

    def _tell_state(self) -> None:
        scene = self._scene
        if not self._begun:
            self._begun = True
            self._tell(f"{scene.title}: {scene.subject}")
            self._tell(scene.place)
        if scene.trouble != self._trouble:
            self._trouble = scene.trouble
            self._tell(f"waiting: {scene.trouble}" if scene.trouble else "going on")
        if scene.terms and scene.terms != self._guarantee:
            self._guarantee = scene.terms
            self._tell(f"guarantee: {' '.join(scene.terms)}")

    def _tell_truth(self) -> None:
        """Outbreaks that begin and end."""
        if self._scene.truth is None:
            return
        running = self._scene.truth().running
        end = self._scene.current.end if self._scene.current else None
        clock = f"{end[11:19]} UTC" if end else ""
        for item in sorted(running - self._outbreaks):
            self._tell(f"{clock:<12}  {_TRUTH} {visible(item)} begins")
        for item in sorted(self._outbreaks - running):
            self._tell(f"{clock:<12}  {_TRUTH} {visible(item)} is over")
        self._outbreaks = running
