"""Where events come from and results go to: files, standard streams, the simulated fleet."""
