import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { decodeLsdAnnounce, encodeLsdAnnounce } from "../../../src/wire/lsd.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const HEAD = "BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n";
const HASH = "0123456789abcdef0123456789abcdef01234567";

export const target: FuzzTarget = {
  name: "lsd",
  corpus: () =>
    [
      `${HEAD}Port: 6881\r\nInfohash: ${HASH}\r\ncookie: 1a2b3c\r\n\r\n\r\n`,
      `${HEAD}Port: 6881\r\nInfohash: ${HASH}\r\nInfohash: ${HASH.replaceAll("0", "f")}\r\n\r\n`,
      `BT-SEARCH * HTTP/1.1\r\nINFOHASH:${HASH.toUpperCase()}\r\nport:1\r\nX-Y: z\r\n\r\n`,
    ].map(latin1Bytes),
  extremes: () => [
    repeated(`${HEAD}Port: 1\r\n`, `Infohash: ${HASH}\r\n`, "\r\n", 1_400),
    repeated(`${HEAD}Port: 1\r\nX:`, " ", "\r\n\r\n", 1_400),
    repeated(HEAD, "a:\r\n", "\r\n"),
  ],
  words: ["\r\n", "Infohash: ", "Port: ", "cookie: ", HASH, "65536", ":"].map(latin1Bytes),
  maxBytes: 2_000,
  run(bytes) {
    const announce = decodeLsdAnnounce(bytes);
    assert(announce.port > 0 && announce.port < 65_536, "a port");
    const again = decodeLsdAnnounce(
      encodeLsdAnnounce(4, { ...announce, infohashes: announce.infohashes.slice(0, 20) }),
    );
    assert(again.infohashes[0] === announce.infohashes[0], "what is read can be written");
    return announce;
  },
};
