"""Calls a tool of Baton's with the client of the Python SDK, as client.mjs does."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def main():
    asked = json.loads(sys.argv[1])
    async with create_mcp_http_client(headers=asked["headers"]) as http:
        async with streamable_http_client(asked["url"], http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                tools = await session.list_tools()
                answer = await session.call_tool(asked["tool"], asked["arguments"])
    names = [tool.name for tool in tools.tools]
    print(json.dumps({"tools": names, "answer": answer.model_dump(mode="json", by_alias=True)}))


asyncio.run(main())
