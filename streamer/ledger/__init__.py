"""Durable decisions: the contract of a ledger, and the ledger in files."""
