"""An attention cache of the last writes behind any mechanism."""
