import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { type EngineProcess, freePort, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { after, before, test } = await testsThatNeed("time");

/** Transport files written by hand: our own writer would not produce these defects. */
const HASH = "h".repeat(20);
const INFO = `d6:lengthi5e4:name8:film.mkv12:piece lengthi16384e6:pieces20:${HASH}e`;
const file = (info: string) => `d4:info${info}e`;

const FILES: readonly (readonly [name: string, bytes: string, status: number, says: RegExp])[] = [
  ["a web page", "<!doctype html><title>log in</title>", 415, /expected a transport file, got a web page/],
  ["a playlist", "#EXTM3U\n#EXTINF:-1,x\n", 415, /got a playlist/],
  ["a magnet in place of a file", `magnet:?xt=urn:btih:${"a".repeat(40)}`, 415, /got a magnet link/],
  ["plain text", "not found", 415, /bencode|transport file/],
  ["an empty dictionary", "de", 415, /no info dictionary/],
  ["a list", "le", 415, /expected a dictionary/],
  ["cut in the middle", file(INFO).slice(0, 60), 415, /bencode/],
  // Keys in any order and repeated keys are accepted, so the contents are what is missing.
  ["an empty info, keys out of order", "d4:infode3:abci1ee", 415, /no piece hashes/],
  ["no info, a key twice", "d1:ai1e1:ai2ee", 415, /no info dictionary/],
  [
    "a depth of 200,000",
    `d1:a${"l".repeat(200_000)}${"e".repeat(200_001)}`,
    415,
    /bencode.*(deep|depth|nest)/,
  ],
  ["a string of 2^60 bytes", "d1152921504606846976:", 415, /bencode/],
  ["an integer beyond 2^64", file(`d6:lengthi99999999999999999999e4:name1:ae`), 415, /bencode|integer/],
  ["an info that is no dictionary", "d4:infoi1ee", 415, /info is not a dictionary/],
  ["no pieces", file("d6:lengthi5e4:name1:ae"), 415, /no piece hashes/],
  [
    "version 2 without a piece length",
    file("d9:file treede12:meta versioni2e4:name1:ae"),
    415,
    /power of two/,
  ],
  ["too few hashes", file(INFO.replace("lengthi5e", "lengthi99999e")), 415, /expected 7 piece hashes/],
  ["pieces of 0 bytes", file(INFO.replace("i16384e", "i0e")), 415, /piece length/],
  ["pieces of 1 GiB", file(INFO.replace("i16384e", "i1073741824e")), 415, /piece length/],
  ["a negative length", file(INFO.replace("i5e", "i-5e")), 415, /length|size/],
  ["no name", file(INFO.replace("4:name8:film.mkv", "")), 415, /no name/],
  ["no length and no files", file(INFO.replace("6:lengthi5e", "")), 415, /length|files/],
  [
    "nothing in it",
    file(INFO.replace("i5e", "i0e").replace(`20:${HASH}`, "0:")),
    415,
    /the content is empty/,
  ],
];

const hex = "0123456789abcdef0123456789abcdef01234567";
const QUERIES: readonly (readonly [
  name: string,
  query: Record<string, string>,
  status: number,
  says: RegExp,
])[] = [
  ["nothing at all", {}, 400, /missing content id/],
  ["an infohash of 39 digits", { infohash: hex.slice(1) }, 400, /40 hexadecimal digits/],
  ["a content id that is not hexadecimal", { content_id: "films" }, 400, /content_id: expected 40/],
  ["a magnet without xt", { magnet: "magnet:?dn=film" }, 400, /no infohash/],
  [
    "a magnet with half an infohash",
    { magnet: `magnet:?xt=urn:btih:${hex.slice(20)}` },
    400,
    /40 hex digits or 32/,
  ],
  [
    "a magnet with a part of an infohash of version 2",
    { magnet: `magnet:?xt=urn:btmh:1220${hex}` },
    400,
    /no infohash/,
  ],
  ["an invalid magnet", { magnet: "film.torrent" }, 400, /expected magnet:\?/],
  ["a magnet given as url, broken", { url: "magnet:?xt=1" }, 400, /no infohash/],
  ["an invalid url", { url: "film" }, 403, /not a URL/],
  ["a file of this machine", { url: "file:///etc/passwd" }, 403, /got file:/],
  ["a script", { url: "javascript:alert(1)" }, 403, /got javascript:/],
  ["a server of another kind", { url: "ftp://127.0.0.1/film.torrent" }, 403, /got ftp:/],
  ["an invalid file index", { infohash: hex, _idx: "first" }, 400, /_idx/],
];

/** Faulty answers of servers to the request for a transport file. */
const SERVERS: readonly (readonly [name: string, answer: RequestListener, status: number, says: RegExp])[] = [
  ["404", (_, response) => void response.writeHead(404).end("gone"), 502, /answered 404/],
  ["an empty answer", (_, response) => void response.end(), 415, /got an empty/],
  [
    "a redirect in a circle",
    (request, response) => void redirect(response, request.url!),
    403,
    /more than 5 redirects/,
  ],
  ["a redirect to a file", (_, response) => void redirect(response, "file:///etc/passwd"), 403, /file:/],
  ["a redirect to a magnet", (_, response) => void redirect(response, "magnet:?xt=1"), 403, /magnet/],
  ["12 MB", (_, response) => void response.end(Buffer.alloc(12_000_000)), 403, /bytes/],
  ["a body that breaks off", breakOff, 502, /film|server|connection|broke|socket|closed|aborted|ended/i],
  ["80 MB in 80 KB", (_, response) => void gzipped(response), 403, /bytes|decompress|times/],
  ["invalid gzip", (_, response) => void garbled(response), 502, /compressed body is invalid/],
  ["no answer at all", () => {}, 502, /9 s|in time|no answer/],
];

function redirect(response: Parameters<RequestListener>[1], location: string): void {
  response.writeHead(302, { location }).end();
}
function breakOff(_: unknown, response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { "content-length": "1000" });
  response.write("d4:info");
  setTimeout(() => response.destroy(), 100);
}
function gzipped(response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(80_000_000)));
}
function garbled(response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { "content-encoding": "gzip" }).end("this is no gzip");
}

let engine: EngineProcess;
let server: Server;
let origin: string;
before(async () => {
  engine = await startEngine();
  server = createServer((request, response) => {
    const [, kind, index] = request.url!.split("/");
    if (kind === "file") response.end(Buffer.from(FILES[Number(index)]![1], "latin1"));
    else SERVERS[Number(index)]![1](request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await engine.stop();
});

/** Requests playback in both forms that clients use; both must return the same error. */
async function refused(
  query: Record<string, string>,
  status: number,
  says: RegExp,
  body?: string,
): Promise<void> {
  const ask = (more: Record<string, string>) =>
    fetch(`${engine.url}/ace/getstream?${new URLSearchParams({ ...query, ...more })}`, {
      signal: AbortSignal.timeout(40_000),
      ...(body !== undefined && { method: "POST", body }),
    });
  const [plain, json] = await Promise.all([ask({}), ask({ format: "json" })]);
  const text = (await plain.text()).trimEnd();
  assert.equal(plain.status, status, text);
  assert.match(text, says);
  assert.ok(text.length < 400 && !/\p{Cc}/u.test(text), `not a readable message: ${text}`);
  assert.equal(json.status, 200);
  const { response, error } = (await json.json()) as {
    response: { playback_url: string } | null;
    error: unknown;
  };
  if (response === null) return assert.equal(error, text);
  // The JSON answer did not wait for the server; its URL does.
  const playing = await fetch(response.playback_url, { signal: AbortSignal.timeout(40_000) });
  assert.deepEqual([playing.status, (await playing.text()).trimEnd()], [status, text]);
}

for (const [index, [name, bytes, status, says]] of FILES.entries()) {
  test(`broken transport file: ${name}, posted and by URL`, async () => {
    const data = Buffer.from(bytes, "latin1").toString("base64");
    await refused({}, status, says, JSON.stringify({ transport_file_data: data }));
    await refused({ url: `${origin}/file/${index}` }, status, says);
  });
}

for (const [name, query, status, says] of QUERIES) {
  test(`broken link: ${name}`, () => refused(query, status, says));
}

for (const [index, [name, , status, says]] of SERVERS.entries()) {
  test(`broken server: ${name}`, { timeout: 60_000 }, () =>
    refused({ url: `${origin}/server/${index}` }, status, says),
  );
}

test("broken server: no server listens on the port", async () => {
  await refused({ url: `http://127.0.0.1:${await freePort()}/film.torrent` }, 502, /refused|connect|reach/i);
});
