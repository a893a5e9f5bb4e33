import { runtime } from "#runtime";
import type { Runtime, TcpSocket } from "../../src/runtime/contract.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { bothWaysHere } from "./both-ways-here.ts";

const { test } = await testsThatNeed("libtorrent");

// Only a part on Deno, whose unstable interface for UDP may be off.
const SIZE_BYTES = (runtime.name === "deno" ? 2 : 16) * 1024 * 1024 + 12_345;

test(
  "interop with libtorrent over uTP alone: the whole file both ways, hash-equal",
  {
    timeout: 120_000,
  },
  () =>
    bothWaysHere({
      sizeBytes: SIZE_BYTES,
      host: "127.0.0.1",
      utp: true,
      flags: ["--utp"],
      machine: withoutTcp(runtime),
    }),
);

/** The machine without outgoing TCP: libtorrent accepts TCP even if it is set to uTP only. */
function withoutTcp(machine: Runtime): Runtime {
  const nothing = () => {};
  return {
    ...machine,
    net: {
      ...machine.net,
      connect(remote, handlers): TcpSocket {
        queueMicrotask(() => handlers.closed("no TCP here"));
        const rest = { pause: nothing, resume: nothing, close: nothing };
        return { remote, bufferedBytes: 0, write: () => true, ...rest };
      },
    },
  };
}
