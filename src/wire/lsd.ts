import { latin1Bytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, parseInfohash } from "../base/ids.ts";

/** The port of local service discovery, and its groups (BEP 14). */
export const LSD_PORT = 6771;
export const LSD_GROUPS = { 4: "239.192.152.143", 6: "ff15::efc0:988f" } as const;

/** What one datagram of local service discovery says (BEP 14). */
export interface LsdAnnounce {
  /** Where the sender listens, at the address that the datagram comes from. */
  readonly port: number;
  readonly infohashes: readonly Infohash[];
  /** By which a sender knows its own datagrams. */
  readonly cookie: string | undefined;
}

const FORMAT = "LSD announce";
const FIRST_LINE = "BT-SEARCH * HTTP/1.1";
/** Longer ones are cut to pieces on their way (BEP 14). */
const MAX_BYTES = 1400;
/** An own header line of 52 bytes each, and room for the others below {@link MAX_BYTES}. */
export const MAX_LSD_INFOHASHES = 24;
/** Those that we make have 8 characters; others' are compared with ours and nothing else. */
const MAX_COOKIE_LENGTH = 64;

/** Writes an announce to the group of a family; at most {@link MAX_LSD_INFOHASHES} at once. */
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
 * Reads an announce. Headers in any order and case; unknown ones are passed over (BEP 14). Throws `DecodeError` where it is
 * none, or names no port or no infohash.
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
