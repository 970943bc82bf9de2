"""Replant moves a Kubernetes cluster's volumes from in-tree plugins to their CSI drivers."""

__version__ = "0.1.0"
