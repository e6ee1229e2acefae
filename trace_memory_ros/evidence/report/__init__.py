"""The page of an evaluation: one HTML file with the verdict, tables, plots and camera strips."""
