"""The papers' recall tasks."""
