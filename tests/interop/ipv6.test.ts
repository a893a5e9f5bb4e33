import { createServer } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { bothWaysHere } from "./both-ways-here.ts";

const SIZE_BYTES = 8 * 1024 * 1024 + 12_345;
const skip = !(await listensOn("::1")) && "this machine has no ::1";

test(
  "interop with libtorrent over IPv6 alone: the whole file both ways over TCP, hash-equal",
  {
    skip,
    timeout: 120_000,
  },
  () =>
    bothWaysHere({
      sizeBytes: SIZE_BYTES,
      host: "::1",
      utp: false,
      flags: ["--host", "[::1]"],
      machine: runtime,
    }),
);

function listensOn(host: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(0, host, () => server.close(() => resolve(true)));
  });
}
