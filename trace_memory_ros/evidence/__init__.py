"""Does a policy use earlier evidence: history transforms, attribution, verdicts and the bag report."""
