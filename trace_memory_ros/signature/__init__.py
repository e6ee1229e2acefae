"""Path signatures: the naive definition, one streaming tick, all prefixes in torch, standardisation."""
