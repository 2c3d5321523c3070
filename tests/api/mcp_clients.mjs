// SPDX-License-Identifier: MIT
// What the client of @modelcontextprotocol/sdk makes of the URL in argv: it
// checks each result against the tool's schema.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const find = createRequire(pathToFileURL(folder + "/x.js"));
const load = (name) => import(pathToFileURL(
    find.resolve("@modelcontextprotocol/sdk/" + name)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load(
    "client/streamableHttp.js");

const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const told = [];
const { tools } = await client.listTools();
const run = await client.callTool({ name: "run_python", arguments: {
	code: "import time; time.sleep(2.5); open('t.txt', 'w').write('x'); print(42)"
} }, undefined, { onprogress: (p) => told.push(p.progress) });
const link = run.content.find((item) => item.type === "resource_link");
const read = await client.readResource({ uri: link.uri });
const bad = await client.callTool({ name: "run_python", arguments: {} });
console.log(JSON.stringify({ tools: tools.length, told: told.length,
	stdout: run.structuredContent.stdout, text: read.contents[0].text,
	isError: bad.isError }));
await client.close();
