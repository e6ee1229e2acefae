"""What RViz shows of a memory."""
