// `nat-pmp-once.ts PORT`: has the router map TCP and UDP by NAT-PMP, which an engine asks only of routers that know no PCP; prints
// what it got, and gives it back as soon as a line comes in.
import { once } from "node:events";
import { argv, exit, stdin } from "node:process";
import { runtime } from "#runtime";
import { openNatPmp } from "../../src/engine/reach/port-mapping/nat-pmp-mapper.ts";
import { findRouter } from "../../src/engine/reach/port-mapping/router-place.ts";
import { SILENT } from "../engine/fake-house.ts";

const { signal } = new AbortController();
const place = await findRouter(runtime.surroundings, () => true);
const mapper = await openNatPmp({ runtime, random: Math.random, log: SILENT }, place, signal);
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
