"""What Kubernetes does with a volume, as rules that are read from its source and seen at work."""
