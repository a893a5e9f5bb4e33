import { assert } from "../../../src/base/assert.ts";
import { equalBytes } from "../../../src/base/bytes.ts";
import { decodeHolepunchMessage, encodeHolepunchMessage } from "../../../src/wire/peer/holepunch-message.ts";
import type { FuzzTarget } from "../contract.ts";

const ADDRESSES = [
  { host: "1.2.3.4", port: 5 },
  { host: "2001:db8::1", port: 65535 },
];
const CORPUS = ADDRESSES.flatMap((address) =>
  (["rendezvous", "connect", "error"] as const).map((kind) =>
    encodeHolepunchMessage({ kind, address, error: 4 }),
  ),
);

export const target: FuzzTarget = {
  name: "holepunch",
  corpus: () => CORPUS,
  maxBytes: 64,
  run(bytes) {
    const message = decodeHolepunchMessage(bytes);
    if (!message) return undefined;
    const again = encodeHolepunchMessage(message);
    // IPv4 addresses in their IPv6 form become IPv4.
    if (again.length === bytes.length) assert(equalBytes(again, bytes), "one message has one form");
    return message;
  },
};
