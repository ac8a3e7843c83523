"""What an overlay of k8s/ comes to, and the questions that the tests ask of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.deployment.kustomize import render

K8S = Path(__file__).parent.parent.parent / "k8s"
OVERLAYS = ("dev", "production")

Object = dict[str, Any]


@dataclass(frozen=True)
class Manifests:
    """All objects of an overlay, rendered."""

    overlay: str
    objects: tuple[Object, ...]

    @classmethod
    def of(cls, overlay: str) -> "Manifests":
        text = render(K8S / "overlays" / overlay)
        return cls(overlay, tuple(yaml.safe_load_all(text)))

    def all(self, kind: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name: str = "streamer") -> Object:
        found = [each for each in self.all(kind) if each["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    @cached_property
    def template(self) -> Object:
        template: Object = self.one("Deployment")["spec"]["template"]
        return template

    @cached_property
    def pod(self) -> Object:
        spec: Object = self.template["spec"]
        return spec

    @cached_property
    def container(self) -> Object:
        (container,) = self.pod["containers"]
        assert isinstance(container, dict)
        return container

    @cached_property
    def environment(self) -> dict[str, str]:
        """What the container's environment says of the settings."""
        given: dict[str, str] = {}
        for source in self.container["envFrom"]:
            given |= self.one("ConfigMap", source["configMapRef"]["name"])["data"]
        return given

    @cached_property
    def ports(self) -> dict[str, int]:
        """The container's, by name."""
        return {port["name"]: port["containerPort"] for port in self.container["ports"]}

    @cached_property
    def files(self) -> dict[str, str]:
        """Paths of the files in the container that hold secrets, with the Secret of each."""
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        return {
            f"{mount['mountPath']}/{item['path']}": secret
            for mount in self.container["volumeMounts"]
            for secret, items in _secrets(volumes[mount["name"]])
            for item in items
        }


def _secrets(volume: Object) -> list[tuple[str, list[dict[str, str]]]]:
    if "secret" in volume:
        return [(volume["secret"]["secretName"], volume["secret"]["items"])]
    sources = volume["projected"]["sources"]
    return [(source["secret"]["name"], source["secret"]["items"]) for source in sources]
