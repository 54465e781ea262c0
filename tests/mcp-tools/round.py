"""Takes one agent's part over the Model Context Protocol, with its official client.

Usage: round.py MODE CONTRACT PROGRAM... reads nothing; prints a JSON document of what it saw.
MODE is how the client settles the version: `legacy` shakes hands, `2026-07-28` does not, and `auto`
asks first.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError


async def take_part(mode, contract, program):
    server = StdioServerParameters(
        command=program[0], args=program[1:], env=dict(os.environ), cwd=os.getcwd()
    )
    seen = {}
    async with Client(server, mode=mode) as client:
        seen["version"] = str(client.protocol_version)
        listed = await client.list_tools()
        seen["tools"] = [tool.name for tool in listed.tools]

        async def call(name, **arguments):
            result = await client.call_tool(f"handoff_{name}", arguments)
            document = result.structured_content
            assert json.loads(result.content[0].text) == document
            assert result.is_error == (not document["ok"])
            return document

        me = "prep-agent"
        primed = await call("prime", **{"as": me})
        seen["next"] = primed["data"]["commands"][0]
        claimed = await call("claim", next=True, **{"as": me})
        seen["claimed"] = claimed["data"]["handoff"]["state"]
        skeleton = await call("new", issue="87", to="implementer-agent", **{"as": me})
        draft = skeleton["data"]["text"]
        refused = await call("send", contract=draft, **{"as": me})
        seen["refused"] = refused["error"]["code"]
        seen["findings"] = len(refused["error"]["findings"])
        checked = await call("check", contract=contract, **{"as": me})
        seen["checked"] = checked["ok"]
        sent = await call("send", contract=contract, **{"as": me})
        seen["sent"] = sent["data"]["handoff"]["id"]

        resources = await client.list_resources()
        seen["resources"] = [str(resource.uri) for resource in resources.resources]
        templates = await client.list_resource_templates()
        seen["templates"] = [template.uri_template for template in templates.resource_templates]
        read = await client.read_resource(f"handoff://handoff/{seen['sent']}/contract")
        seen["same"] = read.contents[0].text == contract
        seen["format"] = read.contents[0].mime_type
        try:
            await client.read_resource("handoff://issue/404")
        except MCPError as error:
            seen["missing"] = error.error.code
    return seen


def main():
    mode, contract, *program = sys.argv[1:]
    with open(contract, encoding="utf-8") as file:
        text = file.read()
    print(json.dumps(asyncio.run(take_part(mode, text, program))))


main()
