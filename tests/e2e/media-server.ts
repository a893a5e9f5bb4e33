import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** A web server of one folder, with ranges (RFC 9110 14), and with the faults that a test asks of it. */
export interface MediaServer {
  readonly url: string;
  /** Requests so far: path and range. */
  readonly asked: string[];
  /** Connections with an answer in progress. */
  readonly open: Set<ServerResponse>;
  close(): Promise<void>;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Starts it on 127.0.0.1. `special` answers paths of its own. */
export async function startMediaServer(
  folder: string,
  special: Readonly<Record<string, Handler>> = {},
): Promise<MediaServer> {
  const asked: string[] = [];
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    // A slow reader causes many waits.
    response.setMaxListeners(0);
    open.add(response);
    response.once("close", () => open.delete(response));
    const path = request.url!.split("?")[0]!;
    asked.push(`${path} ${request.headers.range ?? ""}`);
    const handle = special[path] ?? ((_, to) => sendFile(join(folder, path), request, to));
    Promise.resolve(handle(request, response)).catch(() => {
      response.statusCode = 404;
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    open,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Sends a file, or the range of it that was asked for; breaks off after `breakAfter` bytes if given. */
export async function sendFile(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  breakAfter = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { size, mtimeMs } = await stat(path);
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  const start = range ? Number(range[1]) : 0;
  const end = range?.[2] ? Number(range[2]) + 1 : size;
  const head = { "accept-ranges": "bytes", etag: `"${size}-${mtimeMs}"`, "content-length": end - start };
  if (range) response.writeHead(206, { ...head, "content-range": `bytes ${start}-${end - 1}/${size}` });
  else response.writeHead(200, head);
  let sent = 0;
  const stream = createReadStream(path, { start, end: end - 1 });
  response.once("close", () => stream.destroy());
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    sent += chunk.length;
    if (sent > breakAfter) return void response.destroy();
    if (!response.write(chunk)) await Promise.race([drained(response), closed(response)]);
    if (response.destroyed) return;
  }
  response.end();
}

/** Sends a file again and again, as fast as the client reads, without a content length; its second half after `rest`. */
export async function sendEndless(
  path: string,
  response: ServerResponse,
  times: number,
  rest?: Promise<void>,
): Promise<void> {
  const bytes = await readFile(path);
  response.writeHead(200, { "content-type": "video/mp2t" });
  for (let round = 0; round < times && !response.destroyed; round++) {
    for (let at = 0; at < bytes.length && !response.destroyed; at += 65536) {
      if (at > bytes.length / 2) await rest;
      if (!response.write(bytes.subarray(at, at + 65536)))
        await Promise.race([drained(response), closed(response)]);
    }
  }
  response.end();
}

/** A live manifest made from a complete one: each request moves its window of `length` segments by one. */
export function slidingManifest(whole: string, length: number): () => string {
  const lines = whole.split("\n");
  const segments: string[] = [];
  for (const [at, line] of lines.entries())
    if (line.startsWith("#EXTINF")) segments.push(`${line}\n${lines[at + 1]}`);
  const head = lines.filter((line) => /^#EXT-X-(?:VERSION|TARGETDURATION|KEY|MAP)/.test(line));
  let asked = 0;
  return () => {
    const first = Math.min(Math.max(0, asked++), segments.length - length);
    const isOver = first === segments.length - length;
    const window = segments.slice(first, first + length);
    const tail = isOver ? ["#EXT-X-ENDLIST"] : [];
    return ["#EXTM3U", ...head, `#EXT-X-MEDIA-SEQUENCE:${first}`, ...window, ...tail, ""].join("\n");
  };
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once("drain", resolve));
}

function closed(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once("close", resolve));
}
