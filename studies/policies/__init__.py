"""Both policy families with and without a memory."""
