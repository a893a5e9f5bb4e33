import { canonicalAddress, familyOf, type PeerAddress } from "../../base/address.ts";
import { fromHex, toHex } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** What a session description (RFC 8866) of one data channel transport contains (RFC 8841). */
export interface WebRtcDescription {
  readonly type: "offer" | "answer";
  /** ICE user name fragment and password (RFC 8839 5.4). */
  readonly fragment: string;
  readonly password: string;
  /** SHA-256 of the DTLS certificate; 32 bytes. */
  readonly fingerprint: Uint8Array;
  /** Role in the DTLS handshake: `active` sends the first message. */
  readonly setup: "actpass" | "active" | "passive";
  /** The `mid` of the media section; an answer repeats that of the offer. */
  readonly mid: string;
  readonly sctpPort: number;
  /** The largest message that the sender accepts in bytes; 0: no limit. */
  readonly maxMessageBytes: number;
  /** UDP addresses of the sender; names (multicast DNS), TCP and other components are left out. */
  readonly candidates: readonly PeerAddress[];
}

const FORMAT = "SDP";
/** The tracker protocol's limit. A description with a dozen addresses has about 4 KiB. */
const MAX_CHARACTERS = 16_384;
const MAX_LINES = 400;
/** A machine with several interfaces has about ten; more would make us a tool to contact others. */
const MAX_CANDIDATES = 16;
/** RFC 8841 6.1: without the attribute, 64 KiB. */
const DEFAULT_MESSAGE_BYTES = 65_536;

/** Decodes an offer or answer. Throws `DecodeError`, also if it has anything other than one data channel section. */
export function decodeSdp(type: "offer" | "answer", text: string): WebRtcDescription {
  if (text.length > MAX_CHARACTERS) throw new DecodeError(FORMAT, 0, "too long");
  const lines = text.split("\n", MAX_LINES + 1);
  if (lines.length > MAX_LINES) throw new DecodeError(FORMAT, 0, "too many lines");
  const values = new Map<string, string>();
  const candidates: PeerAddress[] = [];
  let sections = 0;
  for (const raw of lines) {
    const line = raw.trimEnd();
    if (line.startsWith("m=")) {
      sections++;
      if (!/^m=application \d+ (?:UDP\/|TCP\/)?DTLS\/SCTP webrtc-datachannel$/.test(line))
        throw new DecodeError(FORMAT, 0, "expected a data channel section");
    }
    const match = /^a=([a-z0-9-]+):(.*)$/.exec(line);
    if (!match) continue;
    const [, name, value] = match as unknown as [string, string, string];
    if (name === "candidate") {
      const address = readCandidate(value);
      if (address && candidates.length < MAX_CANDIDATES) candidates.push(address);
    } else if (name !== "fingerprint" || /^sha-256 /i.test(value)) values.set(name, value);
  }
  if (sections !== 1) throw new DecodeError(FORMAT, 0, "expected one section");
  const setup = values.get("setup");
  if (setup !== "actpass" && setup !== "active" && setup !== "passive")
    throw new DecodeError(FORMAT, 0, "expected a setup attribute");
  return {
    type,
    // RFC 8839 5.4.
    fragment: expectMatch(values, "ice-ufrag", /^[A-Za-z0-9+/]{4,256}$/),
    password: expectMatch(values, "ice-pwd", /^[A-Za-z0-9+/]{22,256}$/),
    fingerprint: readFingerprint(values.get("fingerprint")),
    setup,
    mid: expectMatch(values, "mid", /^[A-Za-z0-9_.-]{1,32}$/, "0"),
    sctpPort: readNumber(values, "sctp-port", 65_535, 5_000),
    maxMessageBytes: readNumber(values, "max-message-size", Number.MAX_SAFE_INTEGER, DEFAULT_MESSAGE_BYTES),
    candidates,
  };
}

/** Encodes an offer or answer. `sessionId` is a random number; `candidates` must be complete. */
export function encodeSdp(description: WebRtcDescription, sessionId: number): string {
  const { fragment, password, fingerprint, setup, mid, sctpPort, maxMessageBytes, candidates } = description;
  const hex = [...fingerprint].map((byte) => toHex(Uint8Array.of(byte)).toUpperCase());
  const lines = [
    "v=0",
    `o=- ${sessionId} 2 IN IP4 127.0.0.1`,
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${mid}`,
    "a=msid-semantic: WMS",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 0.0.0.0",
    ...candidates.map(candidateLine),
    "a=end-of-candidates",
    `a=ice-ufrag:${fragment}`,
    `a=ice-pwd:${password}`,
    `a=fingerprint:sha-256 ${hex.join(":")}`,
    `a=setup:${setup}`,
    `a=mid:${mid}`,
    `a=sctp-port:${sctpPort}`,
    `a=max-message-size:${maxMessageBytes}`,
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** Priority of a host candidate (RFC 8445 5.1.2); `index` is its place in the list, the best first. */
function candidatePriority(index: number): number {
  return 126 * 2 ** 24 + (65_535 - index) * 256 + 255;
}

function candidateLine({ host, port }: PeerAddress, index: number): string {
  return `a=candidate:${index + 1} 1 udp ${candidatePriority(index)} ${host} ${port} typ host`;
}

/** Reads `foundation component transport priority address port typ …` (RFC 8839 5.1); undefined if it is of no use. */
function readCandidate(value: string): PeerAddress | undefined {
  const [, component, transport, , address = "", port = "", typ] = value.trim().split(" ", 8);
  if (component !== "1" || transport?.toLowerCase() !== "udp" || typ !== "typ") return undefined;
  const host = address.length <= 45 ? canonicalAddress(address) : undefined;
  if (host === undefined || !/^\d{1,5}$/.test(port)) return undefined;
  const number = Number(port);
  const hasZone = familyOf(host) === 6 && address.includes("%");
  return number > 0 && number < 65_536 && !hasZone ? { host, port: number } : undefined;
}

function expectMatch(
  values: ReadonlyMap<string, string>,
  name: string,
  pattern: RegExp,
  fallback?: string,
): string {
  const value = values.get(name) ?? fallback;
  if (value === undefined || !pattern.test(value)) throw new DecodeError(FORMAT, 0, `expected ${name}`);
  return value;
}

function readFingerprint(value: string | undefined): Uint8Array {
  const bytes = fromHex((value ?? "").replace(/^sha-256 /i, "").replaceAll(":", ""));
  if (bytes?.length !== 32) throw new DecodeError(FORMAT, 0, "expected a SHA-256 fingerprint");
  return bytes;
}

function readNumber(
  values: ReadonlyMap<string, string>,
  name: string,
  max: number,
  fallback: number,
): number {
  const text = values.get(name);
  if (text === undefined) return fallback;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) throw new DecodeError(FORMAT, 0, `expected ${name}`);
  return value;
}
