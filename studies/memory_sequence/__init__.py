"""One to six cues in order, overwritten, among decoys."""
