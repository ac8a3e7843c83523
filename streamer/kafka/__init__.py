"""Everything that touches Kafka: connections, topics, transactions, source, ledger, readers."""
