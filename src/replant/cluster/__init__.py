"""The ports to a cluster, Reader and later Writer, and their adapters: live and files."""
