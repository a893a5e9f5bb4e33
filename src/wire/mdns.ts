import { addressFromBytes } from "../base/address.ts";
import { concatBytes, readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";

/** Multicast group and port of multicast DNS (RFC 6762 3). */
export const MDNS_GROUP = "224.0.0.251";
export const MDNS_PORT = 5353;

/** A service of the local network (RFC 6763): the records of one response put together. */
export interface MdnsService {
  /** The service type, such as `_googlecast._tcp.local`. */
  readonly type: string;
  /** The name of the instance without the type. */
  readonly instance: string;
  readonly port: number;
  /** The IPv4 addresses of the host that offers it. */
  readonly addresses: readonly string[];
  /** The texts of its TXT record by name in lower case. */
  readonly texts: ReadonlyMap<string, string>;
  /** False if the service says goodbye (a time to live of 0; RFC 6762 10.1). */
  readonly isAlive: boolean;
}

const PTR = 12;
const TXT = 16;
const SRV = 33;
const A = 1;
const CLASS_IN = 1;
/** The highest bit of a class asks for a flush of the cache in responses (RFC 6762 10.2). */
const CLASS_MASK = 0x7fff;
const RESPONSE_BIT = 0x8000;
const HEAD_BYTES = 12;
/** The longest datagram of multicast DNS (RFC 6762 17). */
const MAX_BYTES = 9_000;
/** A response carries the records of a few services. */
const MAX_RECORDS = 200;
const MAX_SERVICES = 16;
const MAX_TEXTS = 64;
/** A name has at most 128 labels in 255 bytes (RFC 1035 2.3.4); a compressed one jumps at most once per label. */
const MAX_LABELS = 128;
const FORMAT = "multicast DNS";

/** Encodes a query for the instances of service types, such as `_googlecast._tcp.local`. */
export function encodeMdnsQuery(types: readonly string[]): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(HEAD_BYTES);
  head[5] = types.length;
  const questions = types.flatMap((type) => [
    ...type.split(".").map((label) => concatBytes([new Uint8Array([label.length]), encodeUtf8(label)])),
    new Uint8Array([0, 0, PTR, 0, CLASS_IN]),
  ]);
  return concatBytes([head, ...questions]);
}

/** Decodes the services of these types in a response; empty for a query. Throws `DecodeError`. */
export function decodeMdnsServices(bytes: Uint8Array, types: readonly string[]): MdnsService[] {
  if (bytes.length < HEAD_BYTES || bytes.length > MAX_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected ${HEAD_BYTES} to ${MAX_BYTES} bytes`);
  if ((readU16(bytes, 2) & RESPONSE_BIT) === 0) return [];
  const records = readRecords(bytes);
  const pointers = records.filter(({ kind, name }) => kind === PTR && types.includes(name.toLowerCase()));
  return pointers.slice(0, MAX_SERVICES).flatMap(({ name: type, ttl, start }) => {
    const { name } = readName(bytes, start);
    const of = (kind: number, owner: string) =>
      records.filter((each) => each.kind === kind && each.name.toLowerCase() === owner.toLowerCase());
    const [srv] = of(SRV, name);
    const instance = name.slice(0, Math.max(0, name.length - type.length - 1));
    if (instance === "") return [];
    const [txt] = of(TXT, name);
    const texts =
      txt === undefined ? new Map<string, string>() : readTexts(bytes.subarray(txt.start, txt.end));
    const host = srv === undefined ? "" : readName(bytes, srv.start + 6).name;
    const addresses = of(A, host)
      .filter(({ start, end }) => end - start === 4)
      .map((each) => addressFromBytes(bytes.slice(each.start, each.end)));
    const port = srv === undefined ? 0 : readU16(bytes, srv.start + 4);
    const isAlive = ttl > 0 && srv?.ttl !== 0;
    // A goodbye need not repeat the other records.
    return port === 0 && isAlive
      ? []
      : [{ type: type.toLowerCase(), instance, port, addresses, texts, isAlive }];
  });
}

interface DnsRecord {
  readonly name: string;
  readonly kind: number;
  /** In seconds. */
  readonly ttl: number;
  /** The data are the bytes `[start, end)` of the message. */
  readonly start: number;
  readonly end: number;
}

function readRecords(bytes: Uint8Array): DnsRecord[] {
  const [questions, ...counts] = [4, 6, 8, 10].map((at) => readU16(bytes, at)) as [number, ...number[]];
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (questions + total > MAX_RECORDS) throw new DecodeError(FORMAT, 4, `more than ${MAX_RECORDS} records`);
  let at = HEAD_BYTES;
  for (let i = 0; i < questions; i++) at = readName(bytes, at).end + 4;
  return Array.from({ length: total }, () => {
    const { name, end: head } = readName(bytes, at);
    const start = head + 10;
    if (start > bytes.length) throw new DecodeError(FORMAT, head, "the record is cut off");
    const end = start + readU16(bytes, head + 8);
    if (end > bytes.length) throw new DecodeError(FORMAT, head + 8, "the record is longer than the message");
    at = end;
    const kind = readU16(bytes, head);
    const isInternet = (readU16(bytes, head + 2) & CLASS_MASK) === CLASS_IN;
    if (kind === SRV && end - start < 7)
      throw new DecodeError(FORMAT, start, "the service record is too short");
    const ttl = 0x10000 * readU16(bytes, head + 4) + readU16(bytes, head + 6);
    return { name, kind: isInternet ? kind : 0, ttl, start, end };
  });
}

/** Reads a name with compression (RFC 1035 4.1.4). `end` is the offset after it. A pointer leads backwards only. */
function readName(bytes: Uint8Array, from: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = from;
  let end: number | undefined;
  for (let left = MAX_LABELS; left > 0; left--) {
    const length = bytes[at];
    if (length === undefined) throw new DecodeError(FORMAT, at, "the name is cut off");
    if (length === 0) return { name: labels.join("."), end: end ?? at + 1 };
    if (length >= 0xc0) {
      const next = bytes[at + 1];
      const target = next === undefined ? at : ((length & 0x3f) << 8) | next;
      if (target >= at) throw new DecodeError(FORMAT, at, "expected a pointer to an earlier name");
      end ??= at + 2;
      at = target;
      continue;
    }
    if (length > 63 || at + 1 + length > bytes.length) throw new DecodeError(FORMAT, at, "invalid label");
    labels.push(decodeUtf8(bytes.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
  throw new DecodeError(FORMAT, from, `more than ${MAX_LABELS} labels`);
}

/** Reads `name=value` texts (RFC 6763 6); the first of a name counts. */
function readTexts(bytes: Uint8Array): Map<string, string> {
  const texts = new Map<string, string>();
  for (let at = 0; at < bytes.length && texts.size < MAX_TEXTS; ) {
    const end = at + 1 + bytes[at]!;
    const [, name, value = ""] = /^([^=]+)=?(.*)$/s.exec(decodeUtf8(bytes.subarray(at + 1, end))) ?? [];
    if (name !== undefined && !texts.has(name.toLowerCase())) texts.set(name.toLowerCase(), value);
    at = end;
  }
  return texts;
}
