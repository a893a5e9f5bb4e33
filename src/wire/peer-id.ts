import { assert } from "../base/assert.ts";
import { latin1Bytes, latin1Text } from "../base/bytes.ts";

/** How our peer ids begin (BEP 20): the client's two letters and its version, 0.1.0. */
export const PEER_ID_PREFIX = "-SL0100-";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Makes our peer id from at least 12 strong random bytes. Letters and digits only: some trackers choke on others. */
export function makePeerId(random: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(random.length >= 12, "a peer id takes 12 random bytes");
  let text = PEER_ID_PREFIX;
  for (let i = 0; i < 12; i++) text += LETTERS[random[i]! % LETTERS.length];
  return latin1Bytes(text);
}

/** Two-letter codes in use (BEP 20, and the field). */
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

/** What a peer id says of the client, such as `libtorrent 2.0.8`; `unknown` where it says nothing. For display only. */
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

/** `20B0` is 2.0.11: one digit (or letter, from 10) a part, a last zero left out. */
function dottedVersion(version: string): string {
  const parts = [...version].map((letter) => Number.parseInt(letter, 36));
  if (parts[3] === 0) parts.pop();
  return parts.join(".");
}

/** Before 4.0 `3000` was 3.00; since then one part a digit. */
function transmissionVersion(version: string): string {
  if (/^[4-9A-Z]/i.test(version)) return dottedVersion(version);
  return `${version[0]}.${version.slice(1, 3)}`;
}
