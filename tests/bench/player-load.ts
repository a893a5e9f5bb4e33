import { connect } from "node:net";

// `bun tests/bench/player-load.ts COUNT URL`: reads the stream of `timed-stream.ts` at URL by COUNT players, each a connection
// of its own, until SIGTERM. Then prints what they received since SIGUSR2 as a line of JSON.

const PACKET_BYTES = 188;
/** Sync byte and PID of a marked packet. */
const MARK_HEAD = 0x471a_bc;
/** Connections that are opened at once. */
const AT_ONCE = 50;

/** What {@link PlayerLoad} prints. */
export interface LoadReport {
  readonly players: number;
  /** Players whose connection ended early. */
  readonly ended: number;
  readonly bytes: number;
  /** Marked packets that came, and numbers that were skipped between two of them. */
  readonly marks: number;
  readonly missing: number;
  /** The fewest bytes of a player. */
  readonly leastBytes: number;
}

/** One player: finds the marks of a body whose packets begin at its first byte. */
class Player {
  bytes = 0;
  marks = 0;
  missing = 0;
  #index: number | undefined;
  readonly #cut = new Uint8Array(PACKET_BYTES);
  #cutBytes = 0;

  /** Counts anew; a gap before the next mark still counts. */
  reset(): void {
    this.bytes = this.marks = this.missing = 0;
  }

  push(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    let at = 0;
    if (this.#cutBytes > 0) {
      at = Math.min(PACKET_BYTES - this.#cutBytes, bytes.length);
      this.#cut.set(bytes.subarray(0, at), this.#cutBytes);
      this.#cutBytes += at;
      if (this.#cutBytes < PACKET_BYTES) return;
      this.#packet(this.#cut, 0);
    }
    for (; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) this.#packet(bytes, at);
    this.#cut.set(bytes.subarray(at));
    this.#cutBytes = bytes.length - at;
  }

  #packet(bytes: Uint8Array, at: number): void {
    const head = (bytes[at]! << 16) | ((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!;
    if (bytes[at] !== 0x47) throw new Error(`no transport packet begins after ${this.bytes} bytes`);
    if (head !== MARK_HEAD) return;
    const index =
      bytes[at + 8]! * 0x100_0000 + ((bytes[at + 9]! << 16) | (bytes[at + 10]! << 8) | bytes[at + 11]!);
    if (this.#index !== undefined && index > this.#index + 1) this.missing += index - this.#index - 1;
    this.#index = index;
    this.marks++;
  }
}

/** Resolves when the first bytes of the body have come. HTTP/1.0, so that the body has no chunks. */
function play(url: URL, player: Player, ended: () => void): Promise<void> {
  return new Promise((resolve) => {
    let head = "";
    let isBody = false;
    const socket = connect(Number(url.port), url.hostname, () =>
      socket.write(`GET ${url.pathname}${url.search} HTTP/1.0\r\nHost: ${url.host}\r\n\r\n`),
    );
    socket.on("data", (bytes: Uint8Array) => {
      if (isBody) return player.push(bytes);
      const text = Buffer.from(bytes).toString("latin1");
      head += text;
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!head.startsWith("HTTP/1.1 200")) throw new Error(head.slice(0, end));
      isBody = true;
      player.push(bytes.subarray(bytes.length - (head.length - end - 4)));
      resolve();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      ended();
      resolve();
    });
  });
}

const [count, place] = [Number(process.argv[2]), process.argv[3]!];
const players = Array.from({ length: count }, () => new Player());
let ended = 0;
let isOver = false;
process.on("SIGUSR2", () => {
  for (const player of players) player.reset();
});
process.once("SIGTERM", () => {
  isOver = true;
  const sum = (of: (player: Player) => number) => players.reduce((total, player) => total + of(player), 0);
  const report: LoadReport = {
    players: players.length,
    ended,
    bytes: sum(({ bytes }) => bytes),
    marks: sum(({ marks }) => marks),
    missing: sum(({ missing }) => missing),
    leastBytes: Math.min(...players.map(({ bytes }) => bytes)),
  };
  process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
});
for (let at = 0; at < count && !isOver; at += AT_ONCE) {
  const group = players.slice(at, at + AT_ONCE);
  await Promise.all(
    group.map(async (player, i) => {
      const started = await fetch(`${place}&pid=p${at + i}`, { redirect: "manual" });
      const url = started.headers.get("location");
      if (!url) throw new Error(`the engine answered ${started.status}`);
      await started.body?.cancel();
      await play(new URL(url, place), player, () => ended++);
    }),
  );
}
console.log(`{"playing":${count}}`);
