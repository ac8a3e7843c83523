"""compose.yaml fits the program, the files beside it, and itself."""

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from streamer.cli import app
from streamer.config import PREFIX, load
from streamer.service.startup import key_of
from streamer.settings import PrivacySettings, Settings
from tests.deployment.dockerfile import ROOT, stages

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
IMAGE = stages()[-1]


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """What is mounted where, and whether for reading only."""
    parts = [text.split(":") for text in service.get("volumes", [])]
    return {target: (source, mode == ["ro"]) for source, target, *mode in parts}


def published(service: dict[str, Any]) -> dict[int, int]:
    """Ports of the host, with those of the container."""
    ports = [text.split(":")[-2:] for text in service.get("ports", [])]
    return {int(outer): int(inner) for outer, inner in ports}


@pytest.fixture
def settings_of(monkeypatch):
    """What the program makes of a service's environment, in the image."""

    def read(name: str) -> Settings:
        for variable in [one for one in os.environ if one.startswith(PREFIX)]:
            monkeypatch.delenv(variable)
        for variable, value in (IMAGE.environment | SERVICES[name].get("environment", {})).items():
            if variable.startswith(PREFIX):
                monkeypatch.setenv(variable, str(value))
        return load({})

    return read


class TestItself:
    def test_images_of_others_are_pinned(self):
        others = [service["image"] for name, service in SERVICES.items() if name not in OURS]
        assert len(others) == 3
        assert all(re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", image) for image in others)

    def test_services_wait_for_services_that_are_there(self):
        for service in SERVICES.values():
            assert set(service.get("depends_on", ())) <= set(SERVICES)

    def test_a_service_that_is_waited_for_has_a_health(self):
        for service in SERVICES.values():
            wanted = service.get("depends_on", {})
            for name in wanted if isinstance(wanted, dict) else ():
                if wanted[name]["condition"] == "service_healthy":
                    assert "test" in SERVICES[name]["healthcheck"]

    def test_what_is_mounted_is_there(self):
        for name, service in SERVICES.items():
            for source, readonly in mounts(service).values():
                if source.startswith("."):
                    assert (ROOT / source).exists(), f"{name} mounts {source}"
                    assert readonly, f"{name} may write to {source}"
                else:
                    assert source in COMPOSE["volumes"]

    def test_its_ports_are_open_to_this_machine_alone(self):
        ports = [text for service in SERVICES.values() for text in service.get("ports", [])]
        assert all(text.startswith("127.0.0.1:") for text in ports)
        outer = [port for service in SERVICES.values() for port in published(service)]
        assert sorted(outer) == [3000, 8080, 9091]

    @pytest.mark.parametrize("name", OURS)
    def test_our_containers_may_do_nothing_special(self, name):
        service = SERVICES[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"user", "cap_add", "privileged"} & set(service)

    @pytest.mark.parametrize("name", sorted(set(OURS) - {"streamer"}))
    def test_the_image_asks_only_the_service_for_its_health(self, name):
        assert SERVICES[name]["healthcheck"] == {"disable": True}


class TestTheService:
    def test_its_settings_are_known_and_valid(self, settings_of):
        settings = settings_of("streamer")
        assert settings.kafka.create_topics
        assert settings.privacy.key is None

    def test_only_the_public_port_is_published(self, settings_of):
        settings = settings_of("streamer")
        assert list(published(SERVICES["streamer"]).values()) == [settings.http.port]

    def test_it_has_the_time_to_end_orderly(self, settings_of):
        grace = int(SERVICES["streamer"]["stop_grace_period"].removesuffix("s"))
        assert grace > settings_of("streamer").kafka.shutdown_seconds

    def test_it_is_healthy_when_it_is_ready(self, settings_of):
        *_, program = SERVICES["streamer"]["healthcheck"]["test"]
        compile(program, "healthcheck", "exec")
        assert "/readyz" in program
        assert f'"127.0.0.1", {settings_of("streamer").metrics.port},' in program

    def test_its_key_is_made_once_and_for_it_alone(self, settings_of, tmp_path):
        key_file = settings_of("streamer").privacy.key_file
        assert key_file is not None
        directory = str(key_file.parent)
        assert mounts(SERVICES["streamer"])[directory] == ("key", True)
        assert mounts(SERVICES["key"])[directory] == ("key", False)
        assert IMAGE.one("WORKDIR").text == directory
        made = [self._make_key(tmp_path) for _ in range(2)]
        assert made[0] == made[1]
        assert os.listdir(tmp_path) == [key_file.name]
        assert stat.S_IMODE((tmp_path / key_file.name).stat().st_mode) == 0o600

    def _make_key(self, directory: Path) -> bytes | None:
        """Run what the service `key` runs; what the program reads from it."""
        service = SERVICES["key"]
        subprocess.run([*service["entrypoint"], *service["command"]], cwd=directory, check=True)
        return key_of(PrivacySettings(key_file=directory / "key"))


class TestTheSimulator:
    @pytest.fixture
    def options(self) -> dict[str, Any]:
        name, *arguments = SERVICES["simulator"]["command"]
        command = typer.main.get_command(app).commands[name]
        return command.make_context(name, arguments).params

    def test_it_writes_to_the_broker_as_time_passes(self, options):
        assert options["output"] == "kafka"
        assert options["paced"] is True

    def test_it_and_the_service_mean_the_same_broker_topic_and_steps(self, options, settings_of):
        sends, reads = settings_of("simulator"), settings_of("streamer")
        assert sends.kafka.bootstrap_servers == reads.kafka.bootstrap_servers
        assert sends.kafka.events_topic == reads.kafka.events_topic
        assert options["step_seconds"] == reads.stream.step_seconds

    def test_no_outbreak_outlasts_the_budget_of_its_users(self, options, settings_of):
        privacy = settings_of("streamer").privacy
        lengths = [int(text.split(",")[3]) for text in options["outbreak"]]
        assert max(lengths) < privacy.contributions
        assert options["steps"] == privacy.period_steps


class TestTheBroker:
    def test_it_is_reached_under_the_name_that_it_gives(self, settings_of):
        advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        assert advertised == f"PLAINTEXT://{settings_of('streamer').kafka.bootstrap_servers}"
        assert advertised.startswith("PLAINTEXT://kafka:")

    def test_its_data_outlive_it(self):
        directory = SERVICES["kafka"]["environment"]["KAFKA_LOG_DIRS"]
        assert mounts(SERVICES["kafka"])[directory] == ("kafka", False)


class TestPrometheus:
    CONFIG = yaml.safe_load((ROOT / "deploy/compose/prometheus.yaml").read_text())

    def test_it_asks_the_service_at_its_port(self, settings_of):
        (job,) = self.CONFIG["scrape_configs"]
        (targets,) = job["static_configs"]
        assert targets["targets"] == [f"streamer:{settings_of('streamer').metrics.port}"]

    def test_it_loads_the_alerts(self):
        (pattern,) = self.CONFIG["rule_files"]
        source, _ = mounts(SERVICES["prometheus"])[str(Path(pattern).parent)]
        files = list((ROOT / source).glob(Path(pattern).name))
        assert "alert:" in "".join(file.read_text() for file in files)


class TestGrafana:
    def test_it_asks_prometheus(self):
        content = yaml.safe_load((ROOT / "deploy/compose/grafana/datasources.yaml").read_text())
        (source,) = content["datasources"]
        assert source["isDefault"]
        assert source["url"].removeprefix("http://").split(":") == ["prometheus", "9090"]
        assert list(published(SERVICES["prometheus"]).values()) == [9090]

    def test_it_begins_with_our_dashboard(self):
        content = yaml.safe_load((ROOT / "deploy/compose/grafana/dashboards.yaml").read_text())
        (provider,) = content["providers"]
        directory = provider["options"]["path"]
        first = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        source, _ = mounts(SERVICES["grafana"])[directory]
        assert (ROOT / source / Path(first).relative_to(directory)).is_file()
