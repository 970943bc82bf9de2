"""The Kubernetes API over HTTP: ``app`` is the door, one module for each thing that is asked."""
