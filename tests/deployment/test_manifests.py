"""The manifests of k8s/: valid, restricted, and in step with the program that they run."""

import json
import re

import kubernetes_validate
import pytest

import streamer
from streamer.config import load
from streamer.kafka.startup import topic_needs
from tests.deployment.manifests import K8S

OLDEST = "1.31"
"""The oldest Kubernetes that k8s/README.md promises."""
CUSTOM = {"PodMonitor", "PrometheusRule", "KafkaTopic", "KafkaUser"}
"""Kinds that come with operators."""
KINDS = {
    *("ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget"),
    *("PodMonitor", "PrometheusRule", "Service", "ServiceAccount"),
}


@pytest.fixture
def settings(manifests, monkeypatch):
    """What the program makes of the environment in the container."""
    for name, value in manifests.environment.items():
        monkeypatch.setenv(name, value)
    return load({})


def labels_match(selector, labels):
    return selector["matchLabels"].items() <= labels.items() and selector.keys() == {"matchLabels"}


class TestSchema:
    @pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
    def test_every_object_is_valid(self, manifests, version):
        for each in manifests.objects:
            if each["kind"] not in CUSTOM:
                kubernetes_validate.validate(each, version, strict=True)

    def test_everything_is_there(self, dev, production):
        assert {each["kind"] for each in dev.objects} == KINDS
        assert {each["kind"] for each in production.objects} == KINDS | {"KafkaTopic", "KafkaUser"}

    def test_everything_carries_the_name_and_is_in_one_namespace(self, manifests):
        for each in manifests.objects:
            assert each["metadata"]["labels"]["app.kubernetes.io/name"] == "streamer"
        assert len({each["metadata"]["namespace"] for each in manifests.objects}) == 1

    def test_there_is_no_secret_in_it(self, manifests):
        assert not manifests.all("Secret")
        assert "env" not in manifests.container
        assert not [name for name in manifests.environment if name.endswith(("KEY", "PASSWORD"))]


class TestSettings:
    def test_all_are_known_to_the_program(self, manifests, settings):
        """An unknown one would be refused; one that is no setting would be passed over."""
        known = {
            f"STREAMER_{section}__{name}".upper()
            for section in settings.model_fields_set
            for name in getattr(settings, section).model_fields_set
        }
        assert set(manifests.environment) == known

    def test_every_file_is_where_a_secret_is_mounted(self, manifests):
        named = {value for name, value in manifests.environment.items() if name.endswith("_FILE")}
        assert named == set(manifests.files)

    def test_the_key_is_the_operator_s_secret(self, manifests, settings):
        assert manifests.files[str(settings.privacy.key_file)] == "streamer-key"

    def test_the_container_listens_beyond_itself(self, settings):
        assert settings.http.host == settings.metrics.host == "0.0.0.0"

    def test_an_orderly_end_fits_into_the_grace_period(self, manifests, settings):
        servers_seconds = 5
        assert (
            manifests.pod["terminationGracePeriodSeconds"]
            >= settings.kafka.shutdown_seconds + servers_seconds
        )

    def test_the_program_makes_topics_only_where_nobody_else_does(self, manifests, settings):
        assert settings.kafka.create_topics == (not manifests.all("KafkaTopic"))


class TestPorts:
    def test_are_those_of_the_program(self, manifests, settings):
        assert manifests.ports == {"http": settings.http.port, "metrics": settings.metrics.port}

    def test_each_has_a_service_of_its_own(self, manifests):
        exposed = {
            service["metadata"]["name"]: {
                port["targetPort"]: port["port"] for port in service["spec"]["ports"]
            }
            for service in manifests.all("Service")
        }
        ports = manifests.ports
        assert exposed == {
            "streamer": {"http": ports["http"]},
            "streamer-metrics": {"metrics": ports["metrics"]},
        }

    def test_metrics_are_to_be_had_of_a_pod_that_is_not_ready(self, manifests):
        assert manifests.one("Service", "streamer-metrics")["spec"]["publishNotReadyAddresses"]

    def test_probes_ask_the_operators_port(self, manifests):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert manifests.container[probe]["httpGet"]["port"] == "metrics"

    def test_prometheus_asks_the_operators_port(self, manifests):
        (endpoint,) = manifests.one("PodMonitor")["spec"]["podMetricsEndpoints"]
        assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")


class TestPod:
    def test_there_is_one_and_never_two(self, manifests):
        spec = manifests.one("Deployment")["spec"]
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})

    def test_it_may_be_evicted(self, manifests):
        spec = manifests.one("PodDisruptionBudget")["spec"]
        assert spec["maxUnavailable"] == 1
        assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"

    def test_it_is_no_user_that_could_be_root(self, manifests):
        context = manifests.pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0 < context["runAsGroup"]
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_no_container_may_do_more_than_run(self, manifests):
        for container in [*manifests.pod["containers"], *manifests.pod.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }

    def test_it_shares_nothing_with_its_node(self, manifests):
        assert not [name for name in manifests.pod if name.startswith("host")]
        assert not [volume for volume in manifests.pod["volumes"] if "hostPath" in volume]

    def test_it_has_no_token(self, manifests):
        account = manifests.one("ServiceAccount", manifests.pod["serviceAccountName"])
        assert account["automountServiceAccountToken"] is False
        assert manifests.pod["automountServiceAccountToken"] is False

    def test_its_memory_is_limited(self, manifests):
        resources = manifests.container["resources"]
        assert resources["requests"].keys() == {"cpu", "memory"}
        assert resources["limits"].keys() == {"memory"}

    def test_its_user_can_read_the_secrets_and_nobody_else(self, manifests):
        assert manifests.pod["securityContext"]["fsGroup"] > 0
        for volume in manifests.pod["volumes"]:
            mode = (volume.get("secret") or volume["projected"])["defaultMode"]
            assert mode == 0o440

    def test_its_image_has_a_tag(self, manifests):
        name, _, tag = manifests.container["image"].partition(":")
        assert name == "streamer"
        assert tag not in {"", "latest"}

    def test_production_runs_this_version(self, production):
        assert production.container["image"] == f"streamer:{streamer.__version__}"


class TestSelectors:
    """Whoever looks for the pod finds it."""

    def test_of_the_deployment(self, manifests):
        spec = manifests.one("Deployment")["spec"]
        assert labels_match(spec["selector"], manifests.template["metadata"]["labels"])

    def test_of_the_services(self, manifests):
        labels = manifests.template["metadata"]["labels"]
        for service in manifests.all("Service"):
            assert service["spec"]["selector"].items() <= labels.items()

    @pytest.mark.parametrize(
        ("kind", "field"),
        [
            ("PodDisruptionBudget", "selector"),
            ("PodMonitor", "selector"),
            ("NetworkPolicy", "podSelector"),
        ],
    )
    def test_of_the_others(self, manifests, kind, field):
        labels = manifests.template["metadata"]["labels"]
        assert manifests.all(kind)
        for each in manifests.all(kind):
            assert labels_match(each["spec"][field], labels)


class TestNetwork:
    def ways(self, manifests, direction):
        """Every way that a policy opens: from where or to where, and the ports."""
        return [
            (rule.get({"ingress": "from", "egress": "to"}[direction]), rule["ports"])
            for policy in manifests.all("NetworkPolicy")
            for rule in policy["spec"].get(direction, [])
        ]

    def test_what_is_not_opened_is_closed(self, manifests):
        assert manifests.one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]

    def test_metrics_are_for_the_monitoring_namespace_alone(self, manifests):
        monitoring = {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
        assert self.ways(manifests, "ingress") == [
            (None, [{"port": manifests.ports["http"], "protocol": "TCP"}]),
            (
                [{"namespaceSelector": monitoring}],
                [{"port": manifests.ports["metrics"], "protocol": "TCP"}],
            ),
        ]

    def test_nothing_is_reached_but_kafka_and_names(self, manifests, settings):
        names, kafka = self.ways(manifests, "egress")
        assert {(port["port"], port["protocol"]) for port in names[1]} == {(53, "UDP"), (53, "TCP")}
        port = int(settings.kafka.bootstrap_servers.rpartition(":")[2])
        assert kafka[1] == [{"port": port, "protocol": "TCP"}]
        for where, _ in (names, kafka):
            (peer,) = where
            assert peer["podSelector"]["matchLabels"]


class TestMonitoring:
    def test_grafana_finds_the_dashboard(self, manifests):
        found = manifests.one("ConfigMap", "streamer-dashboard")
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        written = (K8S / "base" / "dashboards" / "streamer.json").read_text()
        assert json.loads(found["data"]["streamer.json"]) == json.loads(written)

    def test_the_alerts_ask_for_the_job_under_which_it_is_scraped(self, manifests):
        label = manifests.one("PodMonitor")["spec"]["jobLabel"]
        job = manifests.template["metadata"]["labels"][label]
        asked = {
            named
            for group in manifests.one("PrometheusRule")["spec"]["groups"]
            for rule in group["rules"]
            for named in re.findall(r'job="([^"]*)"', rule["expr"])
        }
        assert asked == {job}

    def test_prometheus_finds_the_alerts(self, manifests):
        groups = manifests.one("PrometheusRule")["spec"]["groups"]
        assert [rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule]


class TestKafka:
    """Production: what Strimzi is asked for is what the program needs."""

    @pytest.fixture
    def settings(self, production, monkeypatch):
        for name, value in production.environment.items():
            monkeypatch.setenv(name, value)
        return load({}).kafka

    @pytest.fixture
    def topics(self, production):
        return {each["metadata"]["name"]: each["spec"] for each in production.all("KafkaTopic")}

    def test_every_topic_is_made_as_the_program_would(self, topics, settings):
        needs = {need.name: need for need in topic_needs(settings, 1024)}
        assert topics.keys() == needs.keys()
        for name, need in needs.items():
            assert need.config.items() <= topics[name]["config"].items()
            assert need.message_bytes <= 1_048_588, "Kafka's default"
            assert topics[name]["partitions"] == 1 or not need.one_partition

    def test_no_topic_is_lost_with_a_broker(self, topics):
        for topic in topics.values():
            assert topic["replicas"] == 3
            assert topic["config"]["min.insync.replicas"] == 2

    def test_no_broker_that_lags_behind_tells_what_was_spent(self, topics, settings):
        assert topics[settings.state_topic]["config"]["unclean.leader.election.enable"] is False

    def test_everything_belongs_to_the_cluster_that_is_reached(self, production, settings):
        cluster = settings.bootstrap_servers.removesuffix("-kafka-bootstrap:9093")
        for each in [*production.all("KafkaTopic"), *production.all("KafkaUser")]:
            assert each["metadata"]["labels"]["strimzi.io/cluster"] == cluster
        assert production.files[str(settings.ssl_ca_file)] == f"{cluster}-cluster-ca-cert"

    def test_the_program_comes_as_the_user_that_is_made(self, production, settings):
        user = production.one("KafkaUser", settings.sasl_username)
        assert user["spec"]["authentication"]["type"] == settings.sasl_mechanism.lower()
        assert production.files[str(settings.sasl_password_file)] == settings.sasl_username
        assert settings.security_protocol == "SASL_SSL"
