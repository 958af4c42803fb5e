"""The certificate with which the API speaks TLS itself: read, and tried, before anybody is served with it.

It is read again when it changes: certificates are renewed every few weeks, and whoever renews them starts nothing anew.
"""

import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from contracts.errors import ConfigurationError

log = structlog.get_logger(__name__)

CERT_VARIABLE, KEY_VARIABLE = "TASKLORE_API_TLS_CERT_FILE", "TASKLORE_API_TLS_KEY_FILE"

#: What OpenSSL says of a certificate whose time is not now, see its x509_vfy.h; whatever else is a client's choice.
_UNTIMELY: Final = {9: "is not valid yet", 10: "has expired"}
#: Seconds between two looks at whether the files have changed.
_LOOK_S = 1.0
#: Turns of a handshake in memory; one of TLS 1.3 is over after two.
_TURNS = 4


class Certificate:
    """A certificate and its key, in files, as they are now.

    Raises:
        ConfigurationError: a file cannot be read, holds no certificate and its key, or one whose time is not now.
    """

    def __init__(self, cert_file: Path, key_file: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._files = cert_file, key_file
        self._monotonic = monotonic
        self._seen = self._stamps()
        self._context = _context_of(*self._files)
        self._look_at = monotonic() + _LOOK_S

    def current(self) -> ssl.SSLContext:
        """Return what a new connection speaks TLS with, 1.2 or newer; files that are broken change nothing."""
        now = self._monotonic()
        if now < self._look_at:
            return self._context
        self._look_at = now + _LOOK_S
        if (stamps := self._stamps()) != self._seen:
            # Noted whatever comes of it: a pair of which one half is still the old one changes once more.
            self._seen = stamps
            try:
                self._context = _context_of(*self._files)
                log.info("api_certificate_read_again", file=str(self._files[0]))
            except ConfigurationError as error:
                log.warning("api_certificate_not_read_again", error=str(error))
        return self._context

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in self._files]


def demand_tls(cert_file: Path | None, key_file: Path | None) -> Certificate | None:
    """Return what the API speaks TLS with; None without a certificate.

    Raises:
        ConfigurationError: as `Certificate`.
    """
    return Certificate(cert_file, key_file) if cert_file is not None and key_file is not None else None


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _context_of(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    for variable, file in ((CERT_VARIABLE, cert_file), (KEY_VARIABLE, key_file)):
        try:
            file.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"cannot read {variable} {str(file)!r}: {error.strerror or error}") from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without an answer to its question a key with a passphrase would have the process wait at a terminal.
        context.load_cert_chain(cert_file, key_file, password="")
    except (ssl.SSLError, ValueError) as error:
        msg = (
            f"{str(cert_file)!r} and {str(key_file)!r} are no certificate and its private key, in PEM and without a "
            f"passphrase; correct {CERT_VARIABLE} and {KEY_VARIABLE}"
        )
        raise ConfigurationError(msg) from error
    if (wrong := _untimely(context, cert_file)) is not None:
        msg = f"the certificate in {str(cert_file)!r} {wrong}, and no client would accept it; renew {CERT_VARIABLE}"
        raise ConfigurationError(msg)
    return context


def _untimely(context: ssl.SSLContext, cert_file: Path) -> str | None:
    """Return what a client that believes in the certificate itself finds wrong with its time, None for nothing."""
    believing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    believing.check_hostname = False
    believing.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    believing.load_verify_locations(cert_file)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = believing.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)
    try:
        for end in ends * _TURNS:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return _UNTIMELY.get(error.verify_code)
    except ssl.SSLError:
        pass  # what else is wrong with it, clients say
    return None
