import { assert } from "../../base/assert.ts";
import { latin1Bytes, latin1Text } from "../../base/bytes.ts";

/** Start of this program's peer ids (BEP 20): two letters of the client, and version 0.1.0. */
const PEER_ID_PREFIX = "-SL0100-";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Makes a peer id for this program from at least 12 cryptographically random bytes. It has only letters and digits, because some
 * trackers mishandle other bytes. */
export function makePeerId(random: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(random.length >= 12, "a peer id needs 12 random bytes");
  let text = PEER_ID_PREFIX;
  for (let i = 0; i < 12; i++) text += LETTERS[random[i]! % LETTERS.length];
  return latin1Bytes(text);
}

/** Two-letter client codes (BEP 20, and others in use). */
const CLIENTS: ReadonlyMap<string, string> = new Map([
  ["7T", "aTorrent"],
  ["AG", "Ares"],
  ["AZ", "Vuze"],
  ["BC", "BitComet"],
  ["BI", "BiglyBT"],
  ["BT", "BitTorrent"],
  ["DE", "Deluge"],
  ["FD", "Free Download Manager"],
  ["FL", "Flud"],
  ["GT", "anacrolix"],
  ["KT", "KTorrent"],
  ["LT", "libtorrent"],
  ["lt", "libTorrent (rTorrent)"],
  ["LW", "LimeWire"],
  ["PI", "PicoTorrent"],
  ["qB", "qBittorrent"],
  ["RN", "rain"],
  ["rQ", "rqbit"],
  ["SL", "Sluice"],
  ["SD", "Xunlei"],
  ["TL", "Tribler"],
  ["TR", "Transmission"],
  ["TX", "Tixati"],
  ["UM", "uTorrent for Mac"],
  ["UT", "uTorrent"],
  ["UW", "uTorrent Web"],
  ["WD", "WebTorrent Desktop"],
  ["WW", "WebTorrent"],
  ["XL", "Xunlei"],
]);

/** Returns the client and version that a peer id encodes, such as `libtorrent 2.0.8`, or `unknown`. For display only. */
export function clientName(peerId: Uint8Array): string {
  const text = latin1Text(peerId.subarray(0, 12));
  const azureus = /^-([A-Za-z0-9]{2})([A-Za-z0-9]{4})-?/.exec(text);
  if (azureus) {
    const [, code, version] = azureus as unknown as [string, string, string];
    const name = CLIENTS.get(code) ?? code;
    return `${name} ${code === "TR" ? transmissionVersion(version) : dottedVersion(version)}`;
  }
  const mainline = /^(M|A2-)(\d{1,2})-(\d{1,2})-(\d{1,2})-/.exec(text);
  if (mainline) {
    return `${mainline[1] === "M" ? "BitTorrent" : "aria2"} ${mainline[2]}.${mainline[3]}.${mainline[4]}`;
  }
  return "unknown";
}

/** Formats `20B0` as 2.0.11: one digit per part, letters from 10 on, without a trailing zero. */
function dottedVersion(version: string): string {
  const parts = [...version].map((letter) => Number.parseInt(letter, 36));
  if (parts[3] === 0) parts.pop();
  return parts.join(".");
}

/** Formats a version of Transmission: `3000` is 3.00; from 4.0 on, one digit per part. */
function transmissionVersion(version: string): string {
  if (/^[4-9A-Z]/i.test(version)) return dottedVersion(version);
  return `${version[0]}.${version.slice(1, 3)}`;
}
