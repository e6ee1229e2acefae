"""VLA: linear attention with a penalty inverse kept by Sherman and Morrison."""
