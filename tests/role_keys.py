"""Keys of the shipped roles, for tests of who signed what."""

from pathlib import Path

from deploy.credentials import make_keys
from deploy.privileges.cast_file import public_keys
from deploy.privileges.nats_accounts import publishers
from deploy.privileges.roles import Cast


def make_role_keys(folder: Path) -> Path:
    """Put a key for each role into *folder*, and the list of those that sign; return the folder."""
    roles = Cast().roles()
    make_keys(folder, [role.name for role in roles])
    known = publishers(roles, public_keys(folder))
    (folder / "publishers.json").write_text(known, "utf-8")
    return folder
