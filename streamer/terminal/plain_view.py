"""The live view as plain lines, one per change or value of an item, for pipes and logs."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from streamer.monitors.states import State
from streamer.terminal.scene import Scene, visible
from streamer.terminal.standing import Value, brief
from streamer.web.answers import Result

_TRUTH = "ground truth of this simulation: outbreak of"


class PlainView:
    """Prints everything new in a scene, once."""

    def __init__(self, scene: Scene, write: Callable[[str], None]) -> None:
        self._scene, self._write = scene, write
        self._trouble = ""
        self._guarantee: list[str] = []
        self._through: int | None = None
        self._busy = False
        self._outbreaks: frozenset[str] = frozenset()
        self._started = False

    def draw(self) -> None:
        self._write_state()
        self._write_truth()
        scene = self._scene
        if not scene.steps:
            self._through = None  # another stream may follow, with earlier steps
        for step in scene.steps:
            if self._through is not None and step.step <= self._through:
                continue
            self._through = step.step
            for result in step.results:
                if words := self._words(result, step.step):
                    self._write(f"{step.end[11:19]} UTC  {words:<43} {visible(result.item)}")
        if scene.current is not None and scene.current.end is not None:
            if self._busy and not scene.current.hitters:
                self._write(f"{scene.current.end[11:19]} UTC  no items any more")
            self._busy = bool(scene.current.hitters)

    def _words(self, result: Result, step: int) -> str:
        """What has changed, or the value. Empty: the item is still there, and nothing is new."""
        steps = 0 if result.since is UNSET else step - result.since
        if result.state is State.GONE:
            return f"{'gone':>9} after {brief(steps * self._scene.step_seconds)}"
        value = Value.of(result, step, result.margin)
        if value is None:
            return ""
        word = "" if result.state is UNSET else result.state.value
        if result.state is State.ONGOING:
            word = f"for {brief((steps + 1) * self._scene.step_seconds)}"
        return f"{value.estimate:>9,} users {value.interval:<15}  {word}"

    def _write_state(self) -> None:
        scene = self._scene
        if not self._started:
            self._started = True
            self._write(f"{scene.title}: {scene.subject}")
            self._write(scene.place)
        if scene.trouble != self._trouble:
            self._trouble = scene.trouble
            self._write(f"waiting: {scene.trouble}" if scene.trouble else "reconnected")
        if scene.terms and scene.terms != self._guarantee:
            self._guarantee = scene.terms
            self._write(f"guarantee: {' '.join(scene.terms)}")

    def _write_truth(self) -> None:
        """Outbreaks that start and end."""
        if self._scene.truth is None:
            return
        running = self._scene.truth().running
        end = self._scene.current.end if self._scene.current else None
        clock = f"{end[11:19]} UTC" if end else ""
        for item in sorted(running - self._outbreaks):
            self._write(f"{clock:<12}  {_TRUTH} {visible(item)} starts")
        for item in sorted(self._outbreaks - running):
            self._write(f"{clock:<12}  {_TRUTH} {visible(item)} ends")
        self._outbreaks = running
