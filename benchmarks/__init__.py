"""What ``make bench`` runs: ratios measured against a floor in one run, never timed tests."""
