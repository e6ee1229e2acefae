"""MIKASA-Robo-VLA."""
