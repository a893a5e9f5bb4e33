// `nat-pmp-once.ts PORT`: maps TCP and UDP ports by NAT-PMP, which the engine uses only if the router has no PCP; prints
// the mappings, and removes them when it reads a line.
import { once } from "node:events";
import { argv, exit, stdin } from "node:process";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { findRouter } from "../../src/net/port-mapping/find-router.ts";
import { openNatPmp } from "../../src/net/port-mapping/nat-pmp-mapper.ts";

const { signal } = new AbortController();
const place = await findRouter(runtime.surroundings, () => true);
const mapper = await openNatPmp({ runtime, random: Math.random, log: SILENT_LOG }, place, signal);
const port = Number(argv[2]);
const mapped = [];
for (const protocol of ["tcp", "udp"] as const) {
  mapped.push(await mapper.map({ protocol, internalPort: port }, port, signal));
}
console.log(`mapped ${JSON.stringify(mapped)}`);
await once(stdin, "data");
for (const each of mapped) await mapper.unmap(each, signal);
console.log("unmapped");
exit(0);
