"""Check that every pinned package can be had for the other platforms of agent authors: `platforms.py FILE...`.

Nothing is installed; pip looks each pin up, with its hashes, as it would on that platform.
"""

import subprocess
import sys

#: What pip calls each platform, in the order in which it prefers wheels.
PLATFORMS = {
    "macOS on arm64": (
        "macosx_14_0_arm64",
        "macosx_13_0_arm64",
        "macosx_12_0_arm64",
        "macosx_11_0_arm64",
        "macosx_11_0_universal2",
        "macosx_10_9_universal2",
    ),
    "Linux on arm64": (
        "manylinux_2_28_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
    ),
}
#: Packages without wheels, in pure Python: they are built anywhere.
BUILT = "nkeys"


def main(files: list[str]) -> int:
    """Look up the pins in *files* for each platform, and return 1 when one is missing."""
    missing = False
    for platform, tags in PLATFORMS.items():
        for file in files:
            problem = look_up(file, tags)
            print(f"{platform}: {file}: {problem or 'all there'}")  # noqa: T201 - a program
            missing = missing or bool(problem)
    return int(missing)


def look_up(file: str, tags: tuple[str, ...]) -> str:
    """Return what pip says of a pin in *file* that has no wheel for *tags*; "" when all have one."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--dry-run", "--quiet", "--no-deps", "--require-hashes"]
    # pip wants a target where it is to choose for another platform; nothing is written there.
    command += ["--target", ".venv/none", "--python-version", "3.11"]
    command += ["--only-binary", ":all:", "--no-binary", BUILT]
    command += [word for tag in tags for word in ("--platform", tag)]
    done = subprocess.run(  # noqa: S603 - pip of our own environment
        [*command, "-r", file], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return "; ".join(errors) or done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
