"""Two arms in MuJoCo, three cameras, tasks whose evidence is gone before the decision, and scripted experts."""
