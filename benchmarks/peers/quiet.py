"""Logging for arq: warnings only, since a line a job is not part of the work."""

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler", "level": "WARNING"}},
    "loggers": {"arq": {"handlers": ["console"], "level": "WARNING"}},
}
