"""The paper's algorithms, and the two that it compares with."""
