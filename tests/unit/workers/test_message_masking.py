"""What is kept of runs has none of the deployment's secrets in it, whoever says them and however."""

import re
import time
from pathlib import Path

import pytest

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.settings import Settings
from tasklore.workers.message_masking import (
    MessageMasker,
    make_masker,
    read_patterns,
)


@pytest.mark.parametrize(
    "said",
    [
        "the key is hunter2hunter2, keep it",
        'and in JSON: {"note": "hunter2hunter2"}',
        "Authorization: Bearer abcdefgh12345678",
        "use sk-abcdefghijklmnopqrst now",
        '{"password": "correct horse"}',
        "{'api_key': 'correct horse'}",
        "DB_PASSWORD=correct-horse-battery",
        '{"credentials": {"user": "ann", "word": "correct horse"}}',
        '[{"deep": {"clientSecret": 123456}}]',
        "postgres://ann:correct-horse@db/1",
        "case C-12345 of the court",
    ],
)
def test_secrets_are_masked_in_any_text(said: str) -> None:
    """A value that is known, one below the name of a secret, one that looks like it, and what a pattern says."""
    masker = MessageMasker(["hunter2hunter2"], [re.compile(r"C-\d+")])
    masked = masker.mask(said)
    assert "***" in masked
    for secret in ("hunter2", "correct", "abcdefgh", "123456", "C-12345"):
        assert secret not in masked


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens: 4000",
        '{"token_count": 17, "name": "Ann"}',
        "Say what the passwords of kings were.",
        '{"password": null}',
        "",
    ],
)
def test_other_texts_stay_as_they_are(said: str) -> None:
    """Nothing is spelled anew that has no secret."""
    assert MessageMasker(["hunter2hunter2"]).mask(said) == said


def test_a_hostile_text_takes_no_longer_than_another() -> None:
    """Names and quotes without an end, and levels without one."""
    masker = MessageMasker()
    for said in (
        "password: " * 7000,
        'password="' * 7000,
        "[" * 65_000,
        "a" * 65_000,
        '{"password": ' * 5000,
        "\\" * 65_000,
        "x'" * 30_000,
        "password='" + "\\" * 60_000,
    ):
        began = time.process_time()
        masker.mask(said)
        assert time.process_time() - began < 1.0, said[:20]


def test_a_process_masks_its_own_secrets(tmp_path: Path) -> None:
    """Of its settings, its files, addresses, and variables that are called as secrets are."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "stripe").write_text("from-a-file-1\n")
    (folder / "large").write_bytes(b"x" * 100_000)
    settings = Settings.load(
        secrets_dir=folder,
        redis_url="redis://user:from-an-address@localhost/0",
        llm_api_key="from-a-setting-1",
    )
    environ = {
        "STRIPE_SECRET_KEY": "from-a-variable-1",
        "DATABASE_URL": "postgres://u:p%40ssword-2@db",
        "HOME": "/home/ann",
        "SHORT_TOKEN": "abc",
    }
    mask = make_masker(settings, environ).mask
    for secret in (
        "from-a-file-1",
        "from-an-address",
        "from-a-setting-1",
        "from-a-variable-1",
        "p@ssword-2",
    ):
        assert mask(f"it is {secret}!") == "it is ***!"
    assert mask("/home/ann and abc") == "/home/ann and abc"


def test_patterns_are_lines_of_a_file(tmp_path: Path) -> None:
    """One that is no regular expression is named with its line."""
    file = tmp_path / "patterns"
    file.write_text("# cases\n\nC-\\d+\n")
    assert [one.pattern for one in read_patterns(file)] == ["C-\\d+"]
    file.write_text("ok\n(unclosed\n")
    with pytest.raises(ConfigurationError, match=r"line 2 .*correct it"):
        read_patterns(file)
    with pytest.raises(ConfigurationError, match="cannot read"):
        read_patterns(tmp_path / "none")
