"""Durable decisions: the contract of a ledger, and the one that keeps files."""
