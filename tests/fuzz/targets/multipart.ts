import {
  MULTIPART_LIMITS,
  MultipartParser,
  type MultipartPart,
} from "../../../routes/control/multipart-parser.ts";
import { assert } from "../../../src/base/assert.ts";
import { concatBytes, equalBytes, latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { encodeUtf8 } from "../../../src/base/utf8.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const BOUNDARY = "b-1";
const FIELD = `--b-1\r\nContent-Disposition: form-data; name="a"\r\n\r\n`;
const FILE = `--b-1\r\nContent-Disposition: form-data; name="file"; filename="ü.m3u"\r\nContent-Type: text/plain\r\n\r\n`;
const END = "\r\n--b-1--";

const CORPUS = [
  `${FIELD}1${END}`,
  `${FIELD}1\r\n${FIELD}2\r\n${FILE}#EXTM3U\r\n--b-\r\n--b${END}\r\n`,
  `\r\n${FIELD}${END}`,
  `${FILE}${END}epilogue`,
  "--b-1--",
  `--b-1 \t\r\nX: y\r\ncontent-disposition:form-data;name=a;filename*=UTF-8''%C3%A9;filename="a\\"%22%0d"\r\n\r\n${END}`,
  `--b-1\r\nContent-Transfer-Encoding: 8bit\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n\r\n\r\n${END}`,
  `--b-1\r\n\r\n1${END}`,
];

/** The parsed form, for reads of the given sizes. */
function parse(bytes: Uint8Array, chunkBytes: number): readonly MultipartPart[] {
  const parser = new MultipartParser(BOUNDARY, bytes.length);
  for (let at = 0; at < bytes.length; at += chunkBytes) parser.push(bytes.subarray(at, at + chunkBytes));
  return parser.end();
}

function isSame(a: MultipartPart, b: MultipartPart): boolean {
  if (typeof a.value === "string" || typeof b.value === "string")
    return a.name === b.name && a.value === b.value;
  return (
    a.name === b.name && a.value.filename === b.value.filename && equalBytes(a.value.bytes, b.value.bytes)
  );
}

export const target: FuzzTarget = {
  name: "multipart",
  corpus: () => CORPUS.map((text) => encodeUtf8(text)),
  extremes: () => [
    ...["\r\n--b-", "\r", "\r\n", "-", " "].map((unit) =>
      concatBytes([repeated(FILE, unit), latin1Bytes(END)]),
    ),
    ...["a:b\r\n", "\r", ";a=b", '"\\', " ;", "%22", '; name="'].map((unit) =>
      repeated("--b-1\r\nContent-Disposition: form-data", unit).subarray(0, MULTIPART_LIMITS.headBytes),
    ),
    repeated("--b-1", " "),
    repeated("", `${FIELD}\r\n`),
  ],
  words: [
    "\r\n",
    "\r\n\r\n",
    "--b-1",
    "--",
    "--b-1--",
    '; name="',
    "; filename=",
    "%22",
    "\\",
    ":",
    "\0",
    "é",
  ].map((text) => encodeUtf8(text)),
  mutate(random, seed) {
    // Insert bytes into the last value; the form around it stays intact.
    const end = latin1Text(seed).lastIndexOf(END);
    if (end < 0) return seed;
    const noise = Uint8Array.from({ length: randomBelow(random, 60) }, () => randomBelow(random, 128));
    const words = [noise, latin1Bytes("\r\n--b-"), latin1Bytes("\r\n\r"), latin1Bytes(`\r\n${FIELD}`)];
    return concatBytes([
      seed.subarray(0, end),
      words[randomBelow(random, words.length)]!,
      seed.subarray(end),
    ]);
  },
  maxBytes: 4096,
  run(bytes) {
    const parts = parse(bytes, bytes.length);
    // The result does not depend on how the form is split.
    const pieces = parse(bytes, 1 + (bytes.length % 13));
    assert(
      parts.length === pieces.length && parts.every((part, i) => isSame(part, pieces[i]!)),
      "the same parts",
    );
    assert(parts.length <= MULTIPART_LIMITS.parts, "few parts");
    return parts;
  },
};
