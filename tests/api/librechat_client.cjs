// SPDX-License-Identifier: MIT
// node librechat_client.cjs FOLDER: LibreChat's own client, of the packages in
// FOLDER.  Each line of standard input is the call of a tool, as JSON; its
// answer is a line: {"content", "artifact"} or {"error"}.
"use strict";

const path = require("path");
const readline = require("readline");
const { pathToFileURL } = require("url");

const MAIN = "node_modules/@librechat/agents/dist/esm/main.mjs";

// What programs may call: the tools of an agent, which run here.
const TOOLS = {
  "add-up": ({ numbers }) => numbers.reduce((a, b) => a + b, 0),
  fail: () => { throw new Error("it is broken"); },
};

function programmatic(agents, options) {
  const tools = Object.entries(TOOLS).map(([name, invoke]) => (
    { name, invoke: async (input) => invoke(input) }));
  return [agents.createProgrammaticToolCallingTool(options), {
    toolMap: new Map(tools.map((tool) => [tool.name, tool])),
    toolDefs: tools.map(({ name }) => ({ name, parameters: {
      type: "object", properties: { numbers: {} } } })) }];
}

async function answer(agents, line) {
  const { apiKey, args, toolCall } = JSON.parse(line);
  const options = apiKey ? { apiKey } : {};
  const [tool, more] = args.lang ?
    [agents.createCodeExecutionTool(options), {}] :
    programmatic(agents, options);
  const call = { name: "execute_code", id: "call", type: "tool_call", args,
                 ...toolCall, ...more };
  try {
    const told = await tool.invoke(call, { toolCall: call });
    return { content: told.content, artifact: told.artifact };
  } catch (error) {
    return { error: String(error.message) };
  }
}

async function main() {
  const url = pathToFileURL(path.join(process.argv[2], MAIN));
  const agents = await import(url.href);
  for await (const line of readline.createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await answer(agents, line)));
}

main();
