"""Dashboards of Grafana, built by code; `dashboards/` holds what comes of it, `provisioning/` how Grafana finds it."""
