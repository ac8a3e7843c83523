"""The overlays, rendered. Without kustomize their tests are skipped; with CI=true they fail."""

import os

import pytest

from tests.deployment.kustomize import KustomizeUnavailableError
from tests.deployment.manifests import OVERLAYS, Manifests


def _rendered(overlay: str) -> Manifests:
    try:
        return Manifests.of(overlay)
    except KustomizeUnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no kustomize for the tests: {error}")
        pytest.skip(f"NO KUSTOMIZE, THE TESTS OF THE MANIFESTS ARE SKIPPED: {error}")


@pytest.fixture(scope="session", params=OVERLAYS)
def manifests(request) -> Manifests:
    """Each overlay in turn."""
    return _rendered(request.param)


@pytest.fixture(scope="session")
def dev() -> Manifests:
    return _rendered("dev")


@pytest.fixture(scope="session")
def production() -> Manifests:
    return _rendered("production")
