"""HTTP: the operators' port and the public port. Independent of Kafka."""
