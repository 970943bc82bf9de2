"""Kubernetes objects as people keep them: files and streams of YAML and JSON.

Reads, splits, loads and writes; decides nothing about what an object means. Whatever cannot be
read becomes an :class:`replant.errors.InputError` that names file and document, and the rest
goes on.
"""
