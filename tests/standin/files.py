# SPDX-License-Identifier: MIT
"""Uploaded files: multipart bodies, names, kinds, and where they are served.
"""

import hashlib
import hmac
import mimetypes
import re
import struct
import time
import unicodedata
import urllib.parse

from errors import ApiError
from state import Attachment

INLINE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
LINK_SECONDS = 24 * 3600


def parse_multipart(content_type, body):
    """Split a multipart/form-data body into {name: (filename, type, bytes)}.

    Raises ApiError 50109 for whatever is not well formed.
    """
    match = re.search(r'boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))',
                      content_type)
    if not match:
        raise ApiError(50109)
    mark = b"--" + (match[1] or match[2]).encode("latin-1")
    if not body.startswith(mark):
        raise ApiError(50109)
    parts = {}
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if pieces[-1].rstrip(b"\r\n") != b"--":
        raise ApiError(50109)
    for piece in pieces[1:-1]:
        head, found, data = piece.partition(b"\r\n\r\n")
        if not found:
            raise ApiError(50109)
        headers = {}
        for line in head.decode("utf-8", "replace").split("\r\n"):
            key, _, value = line.partition(":")
            headers[key.strip().lower()] = value.strip()
        disposition = headers.get("content-disposition", "")
        name = re.search(r'[ ;]name="([^"]*)"', disposition)
        filename = re.search(r'[ ;]filename="((?:[^"\\]|\\.)*)"', disposition)
        if not name or name[1] in parts:
            raise ApiError(50109)
        parts[name[1]] = (filename[1] if filename else None,
                          headers.get("content-type"), data)
    return parts


def clean_filename(name):
    """Return a file's name as Discord keeps it."""
    name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore")
    name = name.decode().replace("/", " ").replace("\\", " ")
    name = re.sub(r"[^A-Za-z0-9_.-]", "", "_".join(name.split()))
    return name.strip("._")[:100] or "unknown"


def _image_size(data):
    """Return (type, width, height) of an image, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return ("image/png",) + struct.unpack(">II", data[16:24])
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return ("image/gif",) + struct.unpack("<HH", data[6:10])
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return ("image/webp", 0, 0)
    if data.startswith(b"\xff\xd8\xff"):
        at = 2
        while at + 9 < len(data) and data[at] == 0xff:
            if 0xc0 <= data[at + 1] <= 0xc3:
                height, width = struct.unpack(">HH", data[at + 5:at + 9])
                return ("image/jpeg", width, height)
            at += 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
        return ("image/jpeg", 0, 0)
    return None


def make_attachment(store, channel_id, filename, data, content_type=None):
    """Make (but do not yet keep) an attachment out of uploaded bytes."""
    attachment = Attachment(store.snowflake(), channel_id,
                            clean_filename(filename), data)
    if filename != attachment.filename:
        attachment.title = filename
    attachment.sha256 = hashlib.sha256(data).hexdigest()
    image = _image_size(data)
    if image:
        content_type = image[0]
        attachment.width = image[1] or None
        attachment.height = image[2] or None
    attachment.content_type = (
        content_type or mimetypes.guess_type(attachment.filename)[0])
    return attachment


def _mark(store, path, issued, expires):
    text = f"{path}?ex={expires:x}&is={issued:x}".encode()
    return hmac.new(store.secret, text, hashlib.sha256).hexdigest()


def attachment_url(store, attachment):
    """Return the signed address of a stored file."""
    path = (f"/attachments/{attachment.channel_id}/{attachment.id}/"
            + urllib.parse.quote(attachment.filename))
    issued = int(store.clock.now())
    expires = issued + LINK_SECONDS
    mark = _mark(store, path, issued, expires)
    return (f"{store.settings.origin}{path}"
            f"?ex={expires:x}&is={issued:x}&hm={mark}")


def find_attachment(store, path, query):
    """Return the attachment of a signed address, or None."""
    try:
        expires = int(query["ex"][0], 16)
        issued = int(query["is"][0], 16)
        mark = query["hm"][0]
    except (KeyError, ValueError):
        return None
    if not hmac.compare_digest(mark.encode(),
                               _mark(store, path, issued, expires).encode()):
        return None
    if store.clock.now() > expires:
        return None
    with store.lock:
        return store.attachments.get(path.split("/")[3])


def attachment_json(store, attachment):
    """Return an attachment as it appears in messages and interactions."""
    url = attachment_url(store, attachment)
    shown = {
        "id": attachment.id,
        "filename": attachment.filename,
        "size": attachment.size,
        "url": url,
        "proxy_url": url,
    }
    for field in ("title", "content_type", "description", "width", "height"):
        value = getattr(attachment, field)
        if value is not None:
            shown[field] = value
    if attachment.ephemeral:
        shown["ephemeral"] = True
    return shown


def served_headers(attachment):
    """Return the headers with which a file is served.

    The bytes come from users and are served from the page's own origin, so
    nothing but a plain image may be shown by the browser.
    """
    inline = attachment.content_type in INLINE_TYPES
    kind = attachment.content_type if inline else "application/octet-stream"
    how = "inline" if inline else "attachment"
    return [
        ("Content-Type", kind),
        ("Content-Disposition", f'{how}; filename="{attachment.filename}"'),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; sandbox"),
        ("Cache-Control", "private, max-age=3600"),
        ("Last-Modified", time.strftime("%a, %d %b %Y %H:%M:%S GMT",
                                        time.gmtime(time.time()))),
    ]
