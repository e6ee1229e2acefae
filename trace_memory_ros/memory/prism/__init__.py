"""PRISM: gated attention over a ring of tick summaries."""
