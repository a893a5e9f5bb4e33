import { randomBytes } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";

/** A seeder of the test's own: the few messages of BEP 3, written without the engine's code, so that it can lie. */
export interface PlainSeeder {
  readonly port: number;
  /** Blocks it has sent. */
  readonly blocks: number;
  close(): Promise<void>;
}

const [UNCHOKE, BITFIELD, REQUEST, PIECE] = [1, 5, 6, 7];

/**
 * Seeds `content` on 127.0.0.1. `spoil` may change a block before it is sent: that is how a poisoner is made.
 * A block takes `blockMs` to leave, so that one fast peer does not do all the work.
 */
export async function startPlainSeeder(
  infohash: string,
  content: Uint8Array,
  pieceLength: number,
  options: { spoil?: (block: Buffer) => void; blockMs?: number } = {},
): Promise<PlainSeeder> {
  const pieces = Math.ceil(content.length / pieceLength);
  const sockets = new Set<Socket>();
  const seeder = { blocks: 0 };
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const queue: [piece: number, begin: number, length: number][] = [];
    let held = Buffer.alloc(0);
    let greeted = false;
    const timer = setInterval(() => {
      const next = queue.shift();
      if (next === undefined) return;
      seeder.blocks++;
      socket.write(pieceMessage(content, pieceLength, next, options.spoil));
    }, options.blockMs ?? 2);
    socket.on("close", () => clearInterval(timer));
    socket.on("data", (bytes) => {
      held = Buffer.concat([held, bytes as Buffer]);
      if (!greeted) {
        if (held.length < 68) return;
        greeted = true;
        held = held.subarray(68);
        socket.write(Buffer.concat([handshake(infohash), bitfield(pieces), message(UNCHOKE)]));
      }
      while (held.length >= 4 && held.length >= 4 + held.readUInt32BE(0)) {
        const body = held.subarray(4, 4 + held.readUInt32BE(0));
        held = held.subarray(4 + body.length);
        if (body[0] === REQUEST)
          queue.push([body.readUInt32BE(1), body.readUInt32BE(5), body.readUInt32BE(9)]);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    get blocks() {
      return seeder.blocks;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function handshake(infohash: string): Buffer {
  const peerId = Buffer.concat([Buffer.from("-XX0001-"), randomBytes(12)]);
  return Buffer.concat([
    Buffer.from("\x13BitTorrent protocol"),
    Buffer.alloc(8),
    Buffer.from(infohash, "hex"),
    peerId,
  ]);
}

function message(id: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(1 + body.length, 0);
  head[4] = id;
  return Buffer.concat([head, body]);
}

function bitfield(pieces: number): Buffer {
  const bits = Buffer.alloc(Math.ceil(pieces / 8));
  for (let piece = 0; piece < pieces; piece++) bits[piece >> 3]! |= 0x80 >> (piece & 7);
  return message(BITFIELD, bits);
}

function pieceMessage(
  content: Uint8Array,
  pieceLength: number,
  [piece, begin, length]: [number, number, number],
  spoil: ((block: Buffer) => void) | undefined,
): Buffer {
  const from = piece * pieceLength + begin;
  const block = Buffer.from(content.subarray(from, from + length));
  spoil?.(block);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(piece, 0);
  head.writeUInt32BE(begin, 4);
  return message(PIECE, Buffer.concat([head, block]));
}
