import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { runtime } from "#runtime";
import { noFacts } from "../../src/live/input/source-feed.ts";
import { PatternFeed } from "../../src/live/input/source-pattern.ts";
import { TableReader } from "../../src/media/ts-tables.ts";
import { renumbered } from "./renumbered-ts.ts";

/**
 * A source of a channel in a process of its own, to be killed: serves the test pattern as a live transport stream over HTTP, on the port
 * of the first argument (0: any). The second one is added to its PIDs. Prints its port, and a line for each request.
 */
const shift = Number(process.argv[3] ?? 0);
const pids = new Map(shift === 0 ? [] : [0x100, 0x101, 0x1000].map((pid) => [pid, pid + shift]));
const server = createServer(async (_, response) => {
  console.log("request");
  const reader = new TableReader();
  const feed = new PatternFeed({ clock: runtime.clock, unixMs: Date.now }, noFacts());
  response.writeHead(200, { "content-type": "video/mp2t" });
  let isOpen = true;
  response.on("close", () => {
    isOpen = false;
  });
  for (let packets = await feed.next(); packets && isOpen; packets = await feed.next())
    response.write(renumbered(packets, pids, reader));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () =>
  console.log(`port ${(server.address() as AddressInfo).port}`),
);
