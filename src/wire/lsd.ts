import { latin1Bytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, parseInfohash } from "../base/ids.ts";

/** Port and multicast groups of local service discovery (BEP 14). */
export const LSD_PORT = 6771;
export const LSD_GROUPS = { 4: "239.192.152.143", 6: "ff15::efc0:988f" } as const;

/** One announce of local service discovery (BEP 14). */
export interface LsdAnnounce {
  /** The port at which the sender listens; its host is the source address of the datagram. */
  readonly port: number;
  readonly infohashes: readonly Infohash[];
  /** Lets a sender recognize its own datagrams. */
  readonly cookie: string | undefined;
}

const FORMAT = "LSD announce";
const FIRST_LINE = "BT-SEARCH * HTTP/1.1";
/** Longer datagrams could be fragmented (BEP 14). */
const MAX_BYTES = 1400;
/** Each takes a header line of 52 bytes; the other headers fit into the rest of {@link MAX_BYTES}. */
export const MAX_LSD_INFOHASHES = 24;
/** Cookies of this program have 8 characters; cookies of others are only compared with them. */
const MAX_COOKIE_LENGTH = 64;

/** Encodes an announce to the group of a family, with at most {@link MAX_LSD_INFOHASHES} infohashes. */
export function encodeLsdAnnounce(family: 4 | 6, announce: LsdAnnounce): Uint8Array<ArrayBuffer> {
  const { port, infohashes, cookie } = announce;
  const host = family === 4 ? LSD_GROUPS[4] : `[${LSD_GROUPS[6]}]`;
  const lines = [
    FIRST_LINE,
    `Host: ${host}:${LSD_PORT}`,
    `Port: ${port}`,
    ...infohashes.map((infohash) => `Infohash: ${infohash}`),
    ...(cookie === undefined ? [] : [`cookie: ${cookie}`]),
  ];
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n\r\n`);
}

/**
 * Decodes an announce. Headers may have any order and case; unknown headers are ignored (BEP 14). Throws `DecodeError` if the
 * datagram is malformed, or has no port or no infohash.
 */
export function decodeLsdAnnounce(bytes: Uint8Array): LsdAnnounce {
  if (bytes.length > MAX_BYTES)
    throw new DecodeError(FORMAT, MAX_BYTES, `expected at most ${MAX_BYTES} bytes`);
  const [first, ...lines] = latin1Text(bytes).split("\r\n");
  if (first !== FIRST_LINE) throw new DecodeError(FORMAT, 0, `expected ${FIRST_LINE}`);
  let port: number | undefined;
  let cookie: string | undefined;
  const infohashes = new Set<Infohash>();
  let offset = first.length + 2;
  for (const line of lines) {
    if (line === "") break;
    const [, name, value] = /^([!-9;-~]{1,64}):[ \t]*([ -~]*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new DecodeError(FORMAT, offset, "expected a header");
    switch (name.toLowerCase()) {
      case "port":
        if (port !== undefined) throw new DecodeError(FORMAT, offset, "expected one port");
        port = readPort(value, offset);
        break;
      case "infohash":
        infohashes.add(readInfohash(value, offset));
        break;
      case "cookie":
        if (value.length <= MAX_COOKIE_LENGTH) cookie = value;
        break;
    }
    offset += line.length + 2;
  }
  if (port === undefined) throw new DecodeError(FORMAT, offset, "expected a port");
  if (infohashes.size === 0) throw new DecodeError(FORMAT, offset, "expected an infohash");
  return { port, infohashes: [...infohashes], cookie };
}

function readPort(text: string, offset: number): number {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port === 0 || port > 65_535) throw new DecodeError(FORMAT, offset, "expected a port from 1 to 65535");
  return port;
}

function readInfohash(text: string, offset: number): Infohash {
  const infohash = text.length === 40 ? parseInfohash(text) : undefined;
  if (infohash === undefined) throw new DecodeError(FORMAT, offset, "expected 40 hex digits of an infohash");
  return infohash;
}
