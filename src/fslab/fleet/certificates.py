"""The fleet's own certificate authority and the certificates that it issues (X.509, ECDSA P-256). Files only.

A certificate proves membership of the fleet and contains the machine's name. It does not distinguish workers from the
scheduler, because dask.distributed does not check names. Private keys never leave the machine that generated them.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fslab.errors import FslabError, UsageError
from fslab.system import files, path_owners

AUTHORITY_VALID = timedelta(days=3650)
VALID = timedelta(days=730)
RENEWED = timedelta(days=60)  # before they expire
BACKDATED = timedelta(days=2)  # clocks of machines may differ


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """Paths of a member's files: the authority's certificate, its own certificate and private key."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    @property
    def certificate(self) -> Path:
        return self.directory / "fleet.pem"

    @property
    def key(self) -> Path:
        return self.directory / "fleet.key"

    @property
    def complete(self) -> bool:
        """Whether all three files exist."""
        return all(path.is_file() for path in (self.authority, self.certificate, self.key))


def check_directory(directory: Path) -> None:
    """Raise UnsafeError if another user could exchange what root reads in a member's directory."""
    path_owners.check_closed(directory, "--directory", sticky=not directory.exists())


def authority_key(directory: Path) -> Path:
    """Return the path of the private key of a fleet's authority. Anyone who can read it can admit any machine."""
    return directory / "ca.key"


def scheduler_directory(directory: Path) -> Path:
    """Return the directory with the credentials of the process that speaks Dask's protocol.

    The enrolment server has other credentials, which joining machines check against their invitation. Therefore a
    stolen certificate of the Dask process cannot admit machines.
    """
    return directory / "scheduler"


def make_authority(directory: Path, name: str) -> None:
    """Create an authority in ``directory`` (mode 0700), and the certificates of enrolment server and scheduler.

    Raises UsageError if there is an authority already.
    """
    try:
        files.make_directories(directory, 0o700)
        directory.chmod(0o700)
    except OSError as error:
        raise UsageError(
            f"cannot be used: {error.strerror}", where=str(directory), hint="choose another --directory"
        ) from error
    if authority_key(directory).exists():
        raise UsageError(
            "a fleet exists already, or an interrupted 'fslab fleet init' left its key",
            where=str(directory),
            hint="choose another --directory, or remove this one",
        )
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fslab fleet {name}"[:64])])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        _dated(AUTHORITY_VALID)
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    authority = certificate.public_bytes(serialization.Encoding.PEM)
    write(authority_key(directory), _pem(key), 0o600)
    scheduler_directory(directory).mkdir(mode=0o700)
    for server, home in _servers(directory):
        own, (own_key, request) = Credentials(directory=home), make_request(server)
        write(own.authority, authority, 0o644)
        write(own.key, own_key, 0o600)
        write(own.certificate, issue(directory, request, server), 0o644)


def make_request(name: str) -> tuple[bytes, bytes]:
    """Return a new private key and a request for a certificate of that name, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    return _pem(key), _request(key, name)


def issue(directory: Path, request: bytes, name: str) -> bytes:
    """Return a certificate (PEM) for a request, signed by the authority in ``directory``.

    ``name`` replaces the name in the request. Raises ValueError if the request is not valid.
    """
    try:
        wanted = x509.load_pem_x509_csr(request)
        valid = wanted.is_signature_valid and isinstance(wanted.public_key(), ec.EllipticCurvePublicKey)
    except (ValueError, UnsupportedAlgorithm) as error:  # an unknown kind of key, or curve
        raise ValueError("the certificate request is not valid") from error
    if not valid:
        raise ValueError("the certificate request is not valid")
    authority = x509.load_pem_x509_certificate(Credentials(directory=directory).authority.read_bytes())
    loaded = serialization.load_pem_private_key(authority_key(directory).read_bytes(), None)
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise FslabError("is not the key of a fleet's authority", where=str(authority_key(directory)))
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(loaded.public_key())
    certificate = (
        _dated(VALID)
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.subject)
        .public_key(wanted.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(issuer, critical=False)
        .sign(loaded, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def renew(directory: Path) -> list[str]:
    """Renew the certificates of enrolment server and scheduler if they expire within 60 days. Returns their names.

    Their keys stay. Invitations contain the fingerprint of the enrolment server's certificate: older ones are invalid.
    """
    renewed = []
    for name, home in _servers(directory):
        mine = Credentials(directory=home)
        if expires(mine.certificate) - datetime.now(UTC) > RENEWED:
            continue
        key = serialization.load_pem_private_key(mine.key.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise FslabError("is not a key of a fleet", where=str(mine.key))
        write(mine.certificate, issue(directory, _request(key, name), name), 0o644)
        renewed.append(name)
    return renewed


def fingerprint(certificate: Path) -> bytes:
    """Return the SHA-256 of a certificate's DER form: 32 bytes."""
    return x509.load_pem_x509_certificate(certificate.read_bytes()).fingerprint(hashes.SHA256())


def name_in(certificate: Path) -> str:
    """Return the name of the member that a certificate was issued to."""
    subject = x509.load_pem_x509_certificate(certificate.read_bytes()).subject
    return "".join(str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME))


def expires(certificate: Path) -> datetime:
    """Return the time at which a certificate expires (UTC)."""
    return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc


def write(path: Path, content: bytes, mode: int) -> None:
    """Write a file with these permissions; it replaces an existing file, as a whole or not at all. Does not follow
    symbolic links."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)


def _servers(directory: Path) -> tuple[tuple[str, Path], ...]:
    """Return the names of a fleet's servers and the directories of their credentials; that of the authority first."""
    return (("enrolment", directory), ("scheduler", scheduler_directory(directory)))


def _request(key: ec.EllipticCurvePrivateKey, name: str) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def _dated(valid: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - BACKDATED).not_valid_after(now + valid)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
