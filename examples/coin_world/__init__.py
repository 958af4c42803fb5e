"""A world of coins whose inhabitants are agents: `python -m examples.coin_world`.

`world` is the world itself, `agents` asks for decisions over NATS, `recording` keeps them, `running` runs it all, and
`server` shows it on a page.
"""
