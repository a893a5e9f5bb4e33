import assert from "node:assert/strict";
import { test } from "node:test";
import { boundaryOf, readMultipart } from "../../routes/control/multipart.ts";
import {
  MULTIPART_LIMITS,
  MultipartParser,
  type MultipartPart,
} from "../../routes/control/multipart-parser.ts";
import { concatBytes } from "../../src/base/bytes.ts";
import { DecodeError, SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";

const BOUNDARY = "x-y";

/** Builds a multipart form from its parts. */
function formOf(...parts: readonly string[]): string {
  return `${parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`).join("")}--${BOUNDARY}--\r\n`;
}

function field(name: string, value: string): string {
  return `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;
}

/** Parses a form in chunks of `chunkBytes`. */
function parse(body: string | Uint8Array, chunkBytes = 1_000_000): readonly MultipartPart[] {
  const parser = new MultipartParser(BOUNDARY);
  const bytes = typeof body === "string" ? encodeUtf8(body) : body;
  for (let at = 0; at < bytes.length; at += chunkBytes) parser.push(bytes.slice(at, at + chunkBytes));
  return parser.end();
}

const FILE = `Content-Disposition: form-data; name="file"; filename="наш.m3u"\r\nContent-Type: audio/x-mpegurl\r\n\r\n`;

for (const chunkBytes of [1, 2, 7, 1_000_000]) {
  test(`MultipartParser: parses fields and files that arrive in chunks of ${chunkBytes} bytes`, () => {
    // Text that only resembles a boundary is part of the value.
    const text = "#EXTM3U\r\n--x\r\n--x-\r\n\r\r\n--x-z\r\n";
    const parts = parse(
      formOf(field("method", "playlist_import"), `${FILE}${text}`, field("é", "")),
      chunkBytes,
    );
    assert.equal(parts.length, 3);
    assert.deepEqual(parts[0], { name: "method", value: "playlist_import" });
    assert.deepEqual(parts[1], {
      name: "file",
      value: { filename: "наш.m3u", mime: "audio/x-mpegurl", bytes: encodeUtf8(text) },
    });
    assert.deepEqual(parts[2], { name: "é", value: "" });
  });
}

test("MultipartParser: parses the body that FormData produces", async () => {
  const form = new FormData();
  form.append("a", "1\r\n2 ü");
  form.append("tags", '["a","b"]');
  form.append("file", new File([new Uint8Array([0, 255, 13, 10, 45, 45])], 'q"u.torrent'));
  const { headers, body } = new Response(form);
  const boundary = boundaryOf(headers.get("content-type")!);
  const parts = await readMultipart(body!, { boundary, expectedBytes: 0 });
  assert.deepEqual(
    parts.map((part) => part.name),
    ["a", "tags", "file"],
  );
  assert.deepEqual([parts[0]!.value, parts[1]!.value], ["1\r\n2 ü", '["a","b"]']);
  const file = parts[2]!.value;
  assert.ok(typeof file === "object");
  assert.equal(file.filename, 'q"u.torrent');
  assert.deepEqual([...file.bytes], [0, 255, 13, 10, 45, 45]);
});

test("MultipartParser: a line break before the first boundary, padding, an epilogue and single dashes are allowed", () => {
  assert.deepEqual(parse(`\r\n${formOf(field("a", "1"))}and more\r\n--x-y`), [{ name: "a", value: "1" }]);
  const padded = `--x-y \t\r\n${field("a", "-")}\r\n--x-y--`;
  assert.deepEqual(parse(padded), [{ name: "a", value: "-" }]);
  assert.deepEqual(parse("--x-y--"), []);
});

const REFUSED: readonly (readonly [what: string, body: string])[] = [
  ["an empty body", ""],
  ["a preamble", `hello\r\n${formOf(field("a", "1"))}`],
  ["a different boundary", "--y-x\r\n"],
  ["a missing last boundary", `--x-y\r\n${field("a", "1")}`],
  ["a header without an end", '--x-y\r\nContent-Disposition: form-data; name="a"'],
  ["a part without headers", formOf("\r\nvalue")],
  ["a part without a name", formOf("Content-Disposition: form-data\r\n\r\n1")],
  ["a disposition other than form-data", formOf('Content-Disposition: attachment; name="a"\r\n\r\n1')],
  ["a duplicate name", formOf('Content-Disposition: form-data; name="a"; name="b"\r\n\r\n1')],
  ["a duplicate header", formOf(`Content-Disposition: form-data; name="a"\r\n${field("a", "1")}`)],
  ["a folded header", formOf('Content-Disposition: form-data;\r\n name="a"\r\n\r\n1')],
  ["a bare line feed", formOf('Content-Disposition: form-data; name="a"\nX: y\r\n\r\n1')],
  ["a zero byte in the header", formOf('Content-Disposition: form-data; name="a\0"\r\n\r\n1')],
  ["a line that is not a header", formOf(`nonsense\r\n${field("a", "1")}`)],
  ["base64 transfer encoding", formOf(`Content-Transfer-Encoding: base64\r\n${field("a", "MQ==")}`)],
  ["text after the boundary", `--x-yz\r\n${field("a", "1")}\r\n--x-y--`],
  ["endless padding", `--x-y${" ".repeat(200)}`],
];

for (const [what, body] of REFUSED) {
  test(`MultipartParser: ${what} is refused`, () => {
    for (const chunkBytes of [1, 1000])
      assert.throws(
        () => parse(body, chunkBytes),
        (thrown) => thrown instanceof DecodeError,
        what,
      );
  });
}

test("MultipartParser: a text field that is not UTF-8 is refused; a file may contain any bytes", () => {
  const bytes = new Uint8Array([0xff, 0xfe]);
  const around = (head: string) => [encodeUtf8(`--x-y\r\n${head}`), bytes, encodeUtf8("\r\n--x-y--")];
  assert.throws(() => parse(concatBytes(around(field("a", "")))), DecodeError);
  const [part] = parse(concatBytes(around(FILE)));
  assert.deepEqual(typeof part?.value === "object" && [...part.value.bytes], [0xff, 0xfe]);
});

test("readMultipart: a form whose Content-Length exceeds the limit is not read", async () => {
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>({ pull: () => void pulls++ }, { highWaterMark: 0 });
  const expectedBytes = MULTIPART_LIMITS.bodyBytes + 1;
  await assert.rejects(
    readMultipart(body, { boundary: "x", expectedBytes }),
    /the form is larger than 55000000/,
  );
  assert.equal(pulls, 0);
});

test("MultipartParser: each limit throws too_large, and nothing beyond it is stored", () => {
  const tooLarge = (thrown: unknown) => thrown instanceof SluiceError && thrown.code === "too_large";
  const many = Array.from({ length: MULTIPART_LIMITS.parts + 1 }, () => field("a", "1"));
  assert.equal(parse(formOf(...many.slice(1))).length, MULTIPART_LIMITS.parts);
  assert.throws(() => parse(formOf(...many)), tooLarge);
  const fits = "v".repeat(MULTIPART_LIMITS.fieldBytes);
  assert.equal(parse(formOf(field("a", fits))).length, 1);
  assert.throws(() => parse(formOf(field("a", `${fits}v`))), tooLarge);
  assert.throws(() => parse(formOf(`X: ${"h".repeat(MULTIPART_LIMITS.headBytes)}`)), tooLarge);
  assert.throws(() => parse(`--x-y\r\n${"h".repeat(MULTIPART_LIMITS.headBytes + 10)}`, 1000), tooLarge);
  const parser = new MultipartParser(BOUNDARY);
  const chunk = new Uint8Array(1_000_000);
  parser.push(encodeUtf8(`--x-y\r\n${FILE}`));
  for (let i = 0; i < 50; i++) parser.push(chunk);
  assert.throws(() => parser.push(chunk), tooLarge);
  const after = new MultipartParser(BOUNDARY);
  after.push(encodeUtf8(formOf(field("a", "1"))));
  for (let i = 0; i < 54; i++) after.push(chunk);
  assert.throws(() => after.push(chunk), tooLarge);
});

test("boundaryOf: accepts a token or quoted string of 1 to 70 characters without a trailing space", () => {
  const of = (rest: string) => boundaryOf(`multipart/form-data${rest}`);
  assert.equal(of("; boundary=----WebKitFormBoundary7MA4"), "----WebKitFormBoundary7MA4");
  assert.equal(of('; charset=utf-8; Boundary="a b:c"'), "a b:c");
  assert.equal(of(`; boundary=${"b".repeat(70)}`).length, 70);
  for (const bad of [
    "",
    "; boundary=",
    '; boundary=""',
    `; boundary=${"b".repeat(71)}`,
    '; boundary="a "',
    "; boundary=a{b",
  ])
    assert.throws(
      () => of(bad),
      (thrown) => thrown instanceof SluiceError && thrown.code === "bad_parameter",
      bad,
    );
});
