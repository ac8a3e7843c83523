"""The ACLs of a KafkaUser, as Strimzi's User Operator would set them on the brokers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest

from tests.kafka.harness import admin_of

# Kafka's numbers for what the manifest calls by name.
_RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactionalId": 5}
_PATTERNS = {"literal": 3, "prefix": 4}
_OPERATIONS = {
    "All": 2,
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "ClusterAction": 9,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
}
_ALLOW = 3


@dataclass(frozen=True)
class Grant:
    """One operation on one resource, from any host."""

    resource: str
    name: str
    pattern: str
    operation: str

    def __str__(self) -> str:
        return f"{self.operation}-{self.resource}-{self.name}"

    def numbers(self, user: str) -> tuple[int, str, int, str, str, int, int]:
        return (
            _RESOURCES[self.resource],
            self.name,
            _PATTERNS[self.pattern],
            f"User:{user}",
            "*",
            _OPERATIONS[self.operation],
            _ALLOW,
        )


def grants_of(user: dict[str, Any]) -> list[Grant]:
    """Of a KafkaUser."""
    authorization = user["spec"]["authorization"]
    assert authorization["type"] == "simple"
    return [
        Grant(
            acl["resource"]["type"],
            acl["resource"]["name"],
            acl["resource"].get("patternType", "literal"),
            operation,
        )
        for acl in authorization["acls"]
        for operation in acl["operations"]
    ]


async def grant(bootstrap: str, user: str, grants: Iterable[Grant]) -> None:
    async with admin_of(bootstrap) as admin:
        for each in grants:
            answer = await admin._send_request(CreateAclsRequest(*each.numbers(user)))
            assert [code for code, _ in answer.creation_responses] == [0]


async def take_away(bootstrap: str, user: str, taken: Grant) -> None:
    async with admin_of(bootstrap) as admin:
        answer = await admin._send_request(DeleteAclsRequest(*taken.numbers(user)))
        ((code, _, matching),) = answer.filter_responses
        assert (code, len(matching)) == (0, 1)
