# SPDX-License-Identifier: MIT
"""Run by the Python of a package `mcp`: what its client makes of URL.  The first
argument is the URL, the second the package's major version."""

import asyncio
import sys

URL, MAJOR = sys.argv[1], int(sys.argv[2])
PNG = ("import base64; open('p.png', 'wb').write(base64.b64decode('iVBORw0KGgoA"
       "AAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
       "AABJRU5ErkJggg==')); open('t.txt', 'w').write('text'); 6 * 7")


def field(item, name):
    """A field by its name in the protocol, or as a version of the package
    spells it."""
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name)
    return getattr(item, name, None) if hasattr(item, name) else getattr(
        item, snake)


async def use(client):
    """Everything that is offered; the client checks each result against the
    tool's schema."""
    tools = (await client.list_tools()).tools
    assert len(tools) == 7, tools
    result = await client.call_tool("run_python", {"code": PNG})
    assert field(result, "structuredContent")["stdout"] == "42\n", result
    kinds = [item.type for item in result.content]
    assert kinds == ["text", "image", "resource_link"], kinds
    read = await client.read_resource(result.content[2].uri)
    assert read.contents[0].text == "text", read
    assert (await client.list_resources()).resources
    assert (await client.list_resource_templates())
    result = await client.call_tool("run_python", {"code": "1/0"})
    assert field(result, "isError"), result
    result = await client.call_tool("run_python", {"code": "import time; "
                                                   "time.sleep(6)"})
    assert field(result, "structuredContent")["exit_code"] == 0, result
    made = field(await client.call_tool("create_session", {}),
                 "structuredContent")
    session = {"session": made["session"]}
    for name, more in (("write_file", {"path": "a", "text": "b"}),
                       ("read_file", {"path": "a"}), ("list_files", {}),
                       ("run_shell", {"command": "cat a"}),
                       ("close_session", {})):
        result = await client.call_tool(name, {**session, **more})
        assert not field(result, "isError"), (name, result)


async def first():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client
    async with streamablehttp_client(URL) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            told = []

            async def progress(done, total, message):
                told.append(done)
            await session.call_tool("run_python", {
                "code": "import time; time.sleep(2.5)"},
                progress_callback=progress)
            assert told, told
            await use(session)


async def second():
    from mcp import Client
    async with Client(URL) as client:
        print(getattr(client, "protocol_version", ""))
        await use(client)


asyncio.run(first() if MAJOR == 1 else second())
