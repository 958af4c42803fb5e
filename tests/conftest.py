"""Fixtures for every test: real servers, and the scripted model."""

pytest_plugins = ["tests.servers", "tests.fixtures_llm"]
