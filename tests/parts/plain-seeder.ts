import { randomBytes } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { TorrentFile } from "./torrent-files.ts";

/** A seeder that shares no code with the engine: the messages of BEP 3 and the metadata of BEP 9. */
export interface PlainSeeder {
  readonly port: number;
  /** Blocks sent so far. */
  readonly blocks: number;
  stop(): Promise<void>;
}

/** What a seeder serves. */
interface SeededContent {
  readonly infohash: string;
  readonly pieceCount: number;
  /** If present, peers can fetch it (BEP 9). */
  readonly infoBytes?: Uint8Array;
  readBlock(piece: number, begin: number, length: number): Promise<Uint8Array>;
}

const [UNCHOKE, BITFIELD, REQUEST, PIECE, EXTENDED] = [1, 5, 6, 7, 20];
/** The id under which this seeder receives `ut_metadata`. */
const METADATA_ID = 3;
const METADATA_PIECE_BYTES = 16 * 1024;
const MAX_QUEUED_BYTES = 1024 * 1024;

/**
 * Seeds `content` on 127.0.0.1. `spoil` may change a block before it is sent, which makes the seeder a poisoner.
 * Each connection sends a block every `blockMs` (default 2), so that one fast peer does not do all the work.
 */
export function startPlainSeeder(
  infohash: string,
  content: Uint8Array,
  pieceLength: number,
  options: { spoil?: (block: Buffer) => void; blockMs?: number } = {},
): Promise<PlainSeeder> {
  const readBlock = async (piece: number, begin: number, length: number) => {
    const from = piece * pieceLength + begin;
    const block = Buffer.from(content.subarray(from, from + length));
    options.spoil?.(block);
    return block;
  };
  const pieceCount = Math.ceil(content.length / pieceLength);
  return startServer({ infohash, pieceCount, readBlock }, options.blockMs ?? 2);
}

/** Seeds the files of a torrent in `folder` on 127.0.0.1 as fast as peers read, with the metadata for magnets. */
export async function startSeeder(torrent: TorrentFile, folder: string): Promise<PlainSeeder> {
  const { entries, infohash, infoBytes, pieceLength } = torrent;
  const handles: FileHandle[] = [];
  for (const { path } of entries) handles.push(await open(join(folder, path)));
  const contentLength = entries.reduce((sum, { length }) => sum + length, 0);
  const readBlock = async (piece: number, begin: number, length: number) => {
    const block = Buffer.alloc(length);
    const [from, to] = [piece * pieceLength + begin, piece * pieceLength + begin + length];
    let start = 0;
    for (const [i, entry] of entries.entries()) {
      const end = start + entry.length;
      const [first, last] = [Math.max(from, start), Math.min(to, end)];
      if (first < last) await handles[i]!.read(block, first - from, last - first, first - start);
      start = end;
    }
    return block;
  };
  const pieceCount = Math.ceil(contentLength / pieceLength);
  const seeder = await startServer({ infohash, pieceCount, infoBytes, readBlock }, 0);
  return {
    port: seeder.port,
    get blocks() {
      return seeder.blocks;
    },
    stop: async () => {
      await seeder.stop();
      for (const handle of handles) await handle.close();
    },
  };
}

async function startServer(content: SeededContent, blockMs: number): Promise<PlainSeeder> {
  const sockets = new Set<Socket>();
  const sending = new Set<Promise<void>>();
  const sent = { blocks: 0 };
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    const serving = serve(socket, content, blockMs, sent).finally(() => sending.delete(serving));
    sending.add(serving);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    get blocks() {
      return sent.blocks;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await Promise.all(sending);
    },
  };
}

/** Answers one peer until its connection closes. */
async function serve(
  socket: Socket,
  content: SeededContent,
  blockMs: number,
  sent: { blocks: number },
): Promise<void> {
  const requests: [piece: number, begin: number, length: number][] = [];
  let [held, hasHandshake] = [Buffer.alloc(0), false];
  let wake = () => {};
  let isClosed = false;
  socket.on("error", () => socket.destroy());
  socket.on("drain", () => wake());
  socket.on("close", () => {
    isClosed = true;
    wake();
  });
  socket.on("data", (bytes) => {
    held = Buffer.concat([held, bytes as Buffer]);
    if (!hasHandshake) {
      if (held.length < 68) return;
      hasHandshake = true;
      held = held.subarray(68);
      socket.write(opening(content));
    }
    while (held.length >= 4 && held.length >= 4 + held.readUInt32BE(0)) {
      const body = held.subarray(4, 4 + held.readUInt32BE(0));
      held = held.subarray(4 + body.length);
      if (body[0] === REQUEST)
        requests.push([body.readUInt32BE(1), body.readUInt32BE(5), body.readUInt32BE(9)]);
      if (body[0] === EXTENDED && content.infoBytes) answerMetadata(socket, body, content.infoBytes);
    }
    wake();
  });
  while (!isClosed) {
    const request = socket.writableLength < MAX_QUEUED_BYTES ? requests.shift() : undefined;
    if (request === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    if (blockMs > 0) await new Promise((resolve) => setTimeout(resolve, blockMs));
    const head = Buffer.alloc(8);
    head.writeUInt32BE(request[0], 0);
    head.writeUInt32BE(request[1], 4);
    const block = await content.readBlock(...request);
    if (isClosed) return;
    sent.blocks++;
    socket.write(message(PIECE, Buffer.concat([head, block])));
  }
}

/** The handshake and the messages that follow it at once. */
function opening({ infohash, pieceCount, infoBytes }: SeededContent): Buffer {
  const reserved = Buffer.alloc(8);
  if (infoBytes) reserved[5] = 0x10; // BEP 10
  const bits = Buffer.alloc(Math.ceil(pieceCount / 8));
  for (let piece = 0; piece < pieceCount; piece++) bits[piece >> 3]! |= 0x80 >> (piece & 7);
  const extensions = `d1:md11:ut_metadatai${METADATA_ID}ee13:metadata_sizei${infoBytes?.length}ee`;
  return Buffer.concat([
    ...[Buffer.from("\x13BitTorrent protocol"), reserved, Buffer.from(infohash, "hex")],
    ...[Buffer.from("-XX0001-"), randomBytes(12)],
    ...(infoBytes ? [message(EXTENDED, Buffer.from(`\0${extensions}`))] : []),
    message(BITFIELD, bits),
    message(UNCHOKE),
  ]);
}

/** The id under which each peer receives `ut_metadata`, from its extension handshake. */
const metadataIds = new WeakMap<Socket, number>();

function answerMetadata(socket: Socket, body: Buffer, infoBytes: Uint8Array): void {
  const text = body.toString("latin1", 2);
  if (body[1] === 0) {
    const id = /11:ut_metadatai(\d+)e/.exec(text)?.[1];
    if (id !== undefined) metadataIds.set(socket, Number(id));
    return;
  }
  const piece = Number(/5:piecei(\d+)e/.exec(text)?.[1] ?? 0);
  const part = infoBytes.subarray(piece * METADATA_PIECE_BYTES, (piece + 1) * METADATA_PIECE_BYTES);
  const head = `d8:msg_typei1e5:piecei${piece}e10:total_sizei${infoBytes.length}ee`;
  const id = Buffer.from([metadataIds.get(socket) ?? 0]);
  socket.write(message(EXTENDED, Buffer.concat([id, Buffer.from(head), part])));
}

function message(id: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(1 + body.length, 0);
  head[4] = id;
  return Buffer.concat([head, body]);
}
