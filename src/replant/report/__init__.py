"""Results as people and machines want them: one file per format. Never reads a cluster."""
