"""How steps are done: devices, processes, batches made ahead, what is kept of an interrupted training."""
