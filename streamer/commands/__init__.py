"""One module per command. Heavy imports wait until the command that needs them runs."""
