"""The connection to Kafka that journal and transport share: options, topics, transactions."""
