"""The `trace-memory` command, thin over the other rooms."""
