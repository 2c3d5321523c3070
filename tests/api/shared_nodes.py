# SPDX-License-Identifier: MIT
"""What nodes that are one (IL_NODES) have in common: the table of them, their
key, the tokens of two people, and an upload by one of them."""

import os
import secrets
import subprocess
import tempfile

from service import BUILD

folder = tempfile.TemporaryDirectory(prefix="inline-nodes-")
tokens = os.path.join(folder.name, "tokens")
key_file = os.path.join(folder.name, "key")
table = os.path.join(folder.name, "table")
with open(key_file, "w") as file:
    file.write(secrets.token_hex(32) + "\n")
os.chmod(folder.name, 0o755)
os.chmod(key_file, 0o644)


def put_table(text):
    """Write the table of nodes, whole or not at all."""
    with open(table + ".new", "w") as new:
        new.write(text)
    os.replace(table + ".new", table)


def add(name):
    """A token of that name, as a header."""
    made = subprocess.run([os.path.join(BUILD, "bin", "ilctl"), "token", "-f",
                           tokens, "add", name], check=True,
                          capture_output=True, text=True).stdout
    return {"Authorization": "Bearer " + made.split()[-1]}


alice = add("alice")
bob = add("bob")
os.chmod(tokens, 0o644)


def upload(served, content, who=alice, name="f"):
    """The id of a file that is uploaded."""
    answer = served.request(
        "POST", "/v1/files", b'--b\r\nContent-Disposition: form-data; '
        b'name="file"; filename="%s"\r\n\r\n%s\r\n--b--\r\n'
        % (name.encode(), content),
        {"Content-Type": "multipart/form-data; boundary=b", **who})
    assert answer.status == 201, answer
    return answer.json["file_id"]
