"""Figures of docs/benchmarks.md, measured in one run with ratios: `make bench`."""
