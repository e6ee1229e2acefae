"""What every measurement needs: statistics, summaries, workers, pages and drawings."""
