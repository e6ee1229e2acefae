"""One module per recall task, each with `run(out_dir, quick, seeds) -> figures`."""
