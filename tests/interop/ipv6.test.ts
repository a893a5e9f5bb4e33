import { runtime } from "#runtime";
import { testsThatNeed } from "../parts/needs.ts";
import { bothWaysHere } from "./both-ways-here.ts";

const { test } = await testsThatNeed("libtorrent", "ipv6");

const SIZE_BYTES = 8 * 1024 * 1024 + 12_345;

test(
  "interop with libtorrent over IPv6 alone: the whole file both ways over TCP, hash-equal",
  {
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
