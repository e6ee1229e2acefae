"""What holds where demonstrations are few."""
