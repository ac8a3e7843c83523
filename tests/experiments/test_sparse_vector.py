"""The game against AboveThreshold, and the broken variants of it that are known.

The adversary picks a sequence of true answers for each of two worlds that differ by at
most 1 in each answer, and wins by an outcome that is far more likely in one of them. The
variants are those of Lyu, Su, Li (2017), "Understanding the Sparse Vector Technique for
Differential Privacy", as far as they apply, each with one thing wrong.

What is proven to be lost is true but for a chance of 1e-8 a case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from streamer.experiments.confidence import proven_epsilon
from streamer.monitors.above_threshold import AboveThreshold
from streamer.privacy.noise import DiscreteLaplace

pytestmark = pytest.mark.slow

EPSILON = 4.0
DOUBT = 1e-8
PLAYS = 200_000
REAL_PLAYS = 20_000
UNANSWERED, BELOW, ABOVE = -1, 0, 1


@dataclass(frozen=True)
class Outcomes:
    """For each play and question the answer, and the value if one was published."""

    answers: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Variant:
    """The sparse vector technique for many plays at once; as it stands, AboveThreshold."""

    threshold_scale: float = 2 / EPSILON
    question_scale: float = 4 / EPSILON
    halts: float = 1
    publishes_values: bool = False

    def play(self, truths: list[int]) -> Outcomes:
        """All questions of all plays; the threshold is 0, without loss of generality."""
        shape = (PLAYS, len(truths))
        noisy = np.array(truths) + _noise(self.question_scale, shape)
        above = noisy >= _noise(self.threshold_scale, (PLAYS, 1))
        halted = np.cumsum(above, axis=1) - above >= self.halts
        answers = np.where(halted, UNANSWERED, np.where(above, ABOVE, BELOW))
        values = np.where(answers == ABOVE, noisy, 0)
        return Outcomes(answers, values if self.publishes_values else np.zeros_like(values))


def _noise(scale: float, shape: tuple[int, int]) -> np.ndarray:
    if scale == 0:
        return np.zeros(shape, dtype=np.int64)
    return DiscreteLaplace(scale).draw(shape[0] * shape[1]).reshape(shape)


class Product:
    """The real class, one play after the other."""

    def play(self, truths: list[int]) -> Outcomes:
        answers = np.full((REAL_PLAYS, len(truths)), UNANSWERED)
        for row in answers:
            monitor = AboveThreshold(EPSILON, threshold=0)
            for place, truth in enumerate(truths):
                row[place] = ABOVE if monitor.ask(truth) else BELOW
                if monitor.halted:
                    break
        return Outcomes(answers, np.zeros_like(answers))


@dataclass(frozen=True)
class Attack:
    """True answers in both worlds, and the outcome that the adversary hopes for."""

    truths: tuple[list[int], list[int]]
    wins: Callable[[Outcomes], np.ndarray]

    def __post_init__(self):
        assert all(abs(a - b) <= 1 for a, b in zip(*self.truths, strict=True))

    def lost(self, technique) -> float:
        scores = [self.wins(technique.play(truths)).astype(float) for truths in self.truths]
        return proven_epsilon(scores[0], scores[1], 0.0, DOUBT)


def pattern(below: int, above: int) -> Callable[[Outcomes], np.ndarray]:
    """This many ⊥ and then this many ⊤, or as many as were answered."""

    def wins(outcomes: Outcomes) -> np.ndarray:
        wanted = np.array([BELOW] * below + [ABOVE] * above)
        given = outcomes.answers
        return np.all((given == wanted) | (given == UNANSWERED), axis=1) & (
            given[:, below] == ABOVE
        )

    return wins


def value_at_most(bound: int, below: int) -> Callable[[Outcomes], np.ndarray]:
    """So many ⊥ and then a ⊤, with a value that shows how low the noisy threshold is."""

    def wins(outcomes: Outcomes) -> np.ndarray:
        return pattern(below, 1)(outcomes) & (outcomes.values[:, below] <= bound)

    return wins


ONE_TOP = Attack(([-1] * 4 + [0], [0] * 4 + [-1]), pattern(4, 1))
MANY_BOTTOMS = Attack(([-1] * 8 + [0], [0] * 8 + [-1]), pattern(8, 1))
MANY_TOPS = Attack(([-1] * 6 + [1] * 6, [0] * 6 + [0] * 6), pattern(6, 6))
LOW_VALUE = Attack(([-1] * 7 + [0], [0] * 7 + [0]), value_at_most(0, below=7))

ATTACKS = {
    "one ⊤": ONE_TOP,
    "many ⊥": MANY_BOTTOMS,
    "many ⊤": MANY_TOPS,
    "low value": LOW_VALUE,
}

BROKEN = {
    "half the noise on the questions": (Variant(question_scale=2 / EPSILON), ONE_TOP),
    "no noise on the questions (algorithm 5)": (Variant(question_scale=0), ONE_TOP),
    "no noise on the threshold": (Variant(threshold_scale=0), MANY_BOTTOMS),
    "a tenth of the noise on the threshold": (
        Variant(threshold_scale=0.2 / EPSILON),
        MANY_BOTTOMS,
    ),
    "noise for one ⊤ where six are allowed (algorithm 4)": (Variant(halts=6), MANY_TOPS),
    "goes on after every ⊤ (algorithm 6)": (Variant(halts=math.inf), MANY_TOPS),
    "publishes the value that was compared (algorithm 3)": (
        Variant(publishes_values=True),
        LOW_VALUE,
    ),
}


@pytest.mark.parametrize(("variant", "attack"), BROKEN.values(), ids=BROKEN)
def test_a_broken_variant_is_found_out(variant, attack):
    assert attack.lost(variant) > EPSILON


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_right_variant_withstands_every_attack(attack):
    assert attack.lost(Variant()) <= EPSILON


def test_six_answers_above_are_private_with_six_times_the_noise_on_the_questions():
    assert MANY_TOPS.lost(Variant(question_scale=6 * 4 / EPSILON, halts=6)) <= EPSILON


def test_the_product_loses_at_least_half_of_its_epsilon_and_no_more_than_all():
    assert 0.5 * EPSILON < ONE_TOP.lost(Product()) <= EPSILON
