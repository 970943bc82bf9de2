"""The proving ground: Replant tried on real Kubernetes. `make test-real` runs it."""
