"""Broken bags in great number."""
