"""TRACE: slots that path signatures route evidence into."""
