"""The paper's algorithms, and the two baselines that it compares with."""
