"""The sandbox: an embedded cluster that speaks the Kubernetes API over HTTP.

From the bottom up: ``resources`` (what is served), ``refusals`` (how the API says no), ``store``
(the objects, and the rules that hold for all of them), ``upkeep`` (what the API server does by
itself), ``api`` (HTTP), ``server`` (a port and a kubeconfig).
"""
