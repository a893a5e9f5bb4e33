import { latin1Bytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { type Random, randomBelow } from "../../src/base/random.ts";
import { type BencodeValue, decodeBencodePrefix } from "../../src/wire/bencode.ts";
import { type BencodeInput, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { pick } from "./mutate.ts";

const NUMBERS = [
  0,
  1,
  -1,
  2,
  255,
  16384,
  65536,
  2 ** 31,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
];
const KEYS = [
  "info",
  "files",
  "length",
  "path",
  "pieces",
  "piece length",
  "name",
  "private",
  "attr",
  "announce",
  "announce-list",
  "path.utf-8",
  "name.utf-8",
  "meta version",
  "m",
  "v",
  "p",
  "reqq",
  "metadata_size",
  "yourip",
  "upload_only",
  "msg_type",
  "piece",
  "total_size",
  "added",
  "added.f",
  "dropped",
  "added6",
  "added6.f",
  "dropped6",
  "peers",
  "peers6",
  "interval",
  "min interval",
  "failure reason",
  "warning message",
  "tracker id",
  "ip",
  "port",
  "complete",
  "comment",
];

/** Changes one value of a bencoded input and re-encodes it canonically, so that the change reaches the code behind the bencode
 * decoder. Bytes after the value are kept. */
export function mutateBencode(random: Random, seed: Uint8Array): Uint8Array {
  try {
    const { value, end } = decodeBencodePrefix(seed, { lenientKeyOrder: true });
    const head = encodeBencode(changed(random, value, 0));
    const bytes = new Uint8Array(head.length + seed.length - end);
    bytes.set(head);
    bytes.set(seed.subarray(end), head.length);
    return bytes;
  } catch (thrown) {
    if (thrown instanceof DecodeError) return seed.slice(); // A malformed corpus entry stays unchanged.
    throw thrown;
  }
}

function changed(random: Random, value: BencodeValue, depth: number): BencodeInput {
  const isLeaf = typeof value === "number" || value instanceof Uint8Array;
  if (depth > 20 || random() < (isLeaf ? 0.9 : 0.12)) return other(random, value);
  if (value instanceof Map) return changedDict(random, value, depth);
  if (Array.isArray(value)) return changedList(random, value, depth);
  return value as number | Uint8Array;
}

function changedDict(random: Random, dict: ReadonlyMap<string, BencodeValue>, depth: number): BencodeInput {
  const copy = new Map<string, BencodeInput>(dict);
  const keys = [...dict.keys()];
  const action = random();
  if (action < 0.1 || keys.length === 0) copy.set(pick(random, KEYS), other(random, 0));
  else if (action < 0.2) copy.delete(pick(random, keys));
  else {
    const key = pick(random, keys);
    copy.set(key, changed(random, dict.get(key)!, depth + 1));
  }
  return copy;
}

function changedList(random: Random, list: readonly BencodeValue[], depth: number): BencodeInput {
  const copy: BencodeInput[] = [...list];
  const at = randomBelow(random, list.length + 1);
  const action = random();
  if (action < 0.1 || at === list.length) copy.splice(at, 0, other(random, list[0] ?? 0));
  else if (action < 0.2) copy.splice(at, 1);
  else if (action < 0.3) copy.splice(at, 0, ...list.slice(at));
  else copy[at] = changed(random, list[at]!, depth + 1);
  return copy;
}

function other(random: Random, value: BencodeValue): BencodeInput {
  if (value instanceof Uint8Array && random() < 0.6) return otherBytes(random, value);
  switch (randomBelow(random, 5)) {
    case 0:
      return pick(random, NUMBERS);
    case 1:
      return [];
    case 2:
      return new Map();
    case 3:
      return latin1Bytes(
        pick(random, ["", ".", "..", "/", "a/../b", "\0", "http://a/announce", "udp://b:1", "\xff\xfe"]),
      );
    default:
      return [value, value];
  }
}

function otherBytes(random: Random, bytes: Uint8Array): Uint8Array {
  const length = randomBelow(random, bytes.length + 8);
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length));
  if (length > 0) copy[randomBelow(random, length)] = randomBelow(random, 256);
  return copy;
}
