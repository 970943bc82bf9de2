"""The checks of a verification, one file per family: each is given a comparison."""
