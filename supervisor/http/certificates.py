"""The certificate with which the API speaks TLS itself: read, and tried, before anybody is served with it."""

import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final

from contracts.errors import ConfigurationError

CERT_VARIABLE, KEY_VARIABLE = "TASKLORE_API_TLS_CERT_FILE", "TASKLORE_API_TLS_KEY_FILE"

#: What OpenSSL says of a certificate whose time is not now, see its x509_vfy.h; whatever else is a client's choice.
_UNTIMELY: Final = {9: "is not valid yet", 10: "has expired"}
#: Turns of a handshake in memory; one of TLS 1.3 is over after two.
_TURNS = 4


def demand_tls(cert_file: Path | None, key_file: Path | None) -> ssl.SSLContext | None:
    """Return what the API speaks TLS with, 1.2 or newer; None without a certificate.

    Raises:
        ConfigurationError: a file cannot be read, holds no certificate and its key, or one whose time is not now.
    """
    if cert_file is None or key_file is None:
        return None
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
