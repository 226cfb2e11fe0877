"""Pipelines at work: agents without memory are sent out, each with its own files, and what they did is proved."""
