"""Two 7-DoF arms in MuJoCo: the delayed-evidence tasks `origin` and `colour`."""
