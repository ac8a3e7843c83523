"""HTTP: the operators' port and the public one, and nothing that knows of Kafka."""
