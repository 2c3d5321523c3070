# SPDX-License-Identifier: MIT
"""The stand-in's identity: an Ed25519 key pair, application id, bot token.

Python's standard library has no Ed25519, so the two calls needed come from
libsodium, which the project depends on anyway.
"""

import base64
import ctypes
import json
import os
import secrets
import tempfile

SEED_BYTES = 32
PUBLIC_BYTES = 32
SECRET_BYTES = 64
SIGNATURE_BYTES = 64


class KeyFileError(Exception):
    """The key file cannot be used; the text says why."""


def _sodium():
    library = ctypes.CDLL("libsodium.so.23")
    if library.sodium_init() < 0:
        raise KeyFileError("libsodium does not start")
    return library


class Identity:
    """What one Discord application is known by."""

    def __init__(self, seed, application_id, bot_token):
        self._library = _sodium()
        self.seed = seed
        self.application_id = application_id
        self.bot_token = bot_token
        public = ctypes.create_string_buffer(PUBLIC_BYTES)
        secret = ctypes.create_string_buffer(SECRET_BYTES)
        self._library.crypto_sign_seed_keypair(public, secret, seed)
        self.public_key = public.raw.hex()
        self._secret = secret.raw

    def sign(self, message):
        """Return the detached signature of `message` as 128 hex digits."""
        signature = ctypes.create_string_buffer(SIGNATURE_BYTES)
        self._library.crypto_sign_detached(
            signature, None, message,
            ctypes.c_ulonglong(len(message)), self._secret)
        return signature.raw.hex()

    def environment(self, api_base):
        """Return the settings with which Inline talks to this stand-in."""
        return {
            "DISCORD_PUBLIC_KEY": self.public_key,
            "DISCORD_APPLICATION_ID": self.application_id,
            "DISCORD_TOKEN": self.bot_token,
            "IL_TUNE_DISCORD_API_BASE": api_base,
        }


def _invent(snowflake):
    application_id = str(snowflake)
    token = ".".join((
        base64.urlsafe_b64encode(application_id.encode()).decode().rstrip("="),
        secrets.token_urlsafe(5)[:6],
        secrets.token_urlsafe(29)[:38],
    ))
    return {
        "seed": secrets.token_hex(SEED_BYTES),
        "application_id": application_id,
        "bot_token": token,
    }


def create_identity(snowflake):
    """Return a new identity that is kept nowhere."""
    return _identity(_invent(snowflake), "(memory)")


def _identity(stored, path):
    try:
        seed = bytes.fromhex(stored["seed"])
        application_id = stored["application_id"]
        bot_token = stored["bot_token"]
    except (KeyError, TypeError, ValueError):
        raise KeyFileError(f"{path}: not a key file of the stand-in")
    if len(seed) != SEED_BYTES or not application_id.isdigit():
        raise KeyFileError(f"{path}: not a key file of the stand-in")
    return Identity(seed, application_id, bot_token)


def load_identity(path, snowflake):
    """Read the identity in `path`; make the file (0600) when there is none.

    Two programs that start together get the same identity: the file is
    linked into place whole, and whoever comes second reads the first's.
    """
    if not os.path.exists(path):
        folder = os.path.dirname(os.path.abspath(path))
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(_invent(snowflake), file)
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(temporary)
    with open(path) as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise KeyFileError(f"{path}: must be readable by its owner only")
        try:
            stored = json.load(file)
        except ValueError:
            raise KeyFileError(f"{path}: not a key file of the stand-in")
    return _identity(stored, path)
