"""Manifests for Kubernetes as data: what every pod of ours has, what workers add, and when there are more of them.

The manifests in the folder `k8s` and those that `tasklore k8s agent` prints are made of the same parts. Nothing here
speaks to a cluster.
"""
