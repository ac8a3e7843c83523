"""Changes of the sums from one distance to the next, against exact differences."""

import mpmath
import numpy as np
import pytest

from streamer.privacy.gaussian_sums import GaussianSums
from streamer.privacy.priced_slopes import Block
from tests.privacy.precise_gaussian import PreciseGaussian

LOUD = 7
# Both tails, both flanks, across 0, and single steps.
BLOCKS = [(-40, -36), (-12, -7), (-3, 4), (-1, 0), (0, 1), (2, 3), (5, 11), (14, 15), (30, 38)]
BLOCKS += [(-2, 2), (1, 3), (-5, -2)]


class Changes:
    """The parts of (A) and (B) by their definition, and how they change as multiples of φ(d)."""

    def __init__(self, sigma, power):
        self._law, self._power = PreciseGaussian(sigma), mpmath.mpf(power)

    def reports(self, d, beyond=0):
        y = d + beyond
        before, at = self._law.mass(y - 1), self._law.mass(y)
        return before**self._power * at ** (1 - self._power) / self._law.mass(d)

    def quiet(self, d):
        return (self._part(d + 1) - self._part(d)) / self._law.mass(d)

    def there(self, d):
        return (self._part(2 - d) - self._part(1 - d)) / self._law.mass(d)

    def _part(self, d):
        law = self._law
        return law.at_most(d - 2) ** self._power * law.at_most(d - 1) ** (1 - self._power)


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(200):
        yield


def block(sigma):
    low, high = (np.array(ends, dtype=float) for ends in zip(*BLOCKS, strict=True))
    return Block(GaussianSums(sigma), low, high, 1e-11)


def assert_within(found, exact):
    for place, (low, high) in enumerate(BLOCKS):
        values = [exact(d) for d in range(low, high)]
        least, most = found.least[place], found.most[place]
        assert least <= min(values)
        assert max(values) <= most
        if high - low == 1 and abs(low) < 3:
            assert most - least == pytest.approx(0, abs=1e-9 * float(1 + abs(values[0])))


@pytest.mark.parametrize(
    ("sigma", "power"),
    [(6.4, 4.3), (6.4, -3.3), (12.0, 50.0), (12.0, -49.0), (1.5, 9.0), (1.5, -8.0)],
)
class TestMultiples:
    def test_reports_lose_their_first_term(self, sigma, power):
        assert_within(block(sigma).reports(power), Changes(sigma, power).reports)

    def test_loud_reports_lose_theirs(self, sigma, power):
        changes = Changes(sigma, power)
        assert_within(block(sigma).reports(power, LOUD), lambda d: changes.reports(d, LOUD))

    def test_quiet_answers_grow(self, sigma, power):
        assert_within(block(sigma).quiet(power), Changes(sigma, power).quiet)

    def test_what_is_still_there_shrinks(self, sigma, power):
        assert_within(block(sigma).there(power), Changes(sigma, power).there)


def test_the_mass_is_largest_at_0():
    assert_within(block(6.4).mass, PreciseGaussian(6.4).mass)
