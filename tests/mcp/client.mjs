// Calls a tool of Baton's with the client that LibreChat uses:
//   node client.mjs '{"url", "headers", "tool", "arguments"}'
// Prints the tools' names and the answer, as JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const asked = JSON.parse(process.argv[2]);
const client = new Client({ name: 'test', version: '1' });
await client.connect(
  new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers: asked.headers } }),
);
const { tools } = await client.listTools();
await client.ping();
const answer = await client.callTool({ name: asked.tool, arguments: asked.arguments });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), answer }));
await client.close();
