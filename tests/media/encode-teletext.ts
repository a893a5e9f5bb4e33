import { crc32Mpeg, packetsOfSection } from "../../src/media/psi.ts";

/** A page to send: rows of text by row number, with attributes as control characters, and further packets. */
export interface SentPage {
  readonly page: number;
  readonly option?: number;
  readonly rows?: Readonly<Record<number, string>>;
  readonly triplets?: readonly (readonly [address: number, mode: number, data: number])[];
  /** Designation of the first and second character set (X/28/0). */
  readonly sets?: readonly [number, number];
}

/** Sends text within a box, at double height as broadcasters do. */
export function boxed(text: string): string {
  return `\u000d\u000b\u000b${text}\u000a\u000a`;
}

/** Writes a page, and the header that ends it, as lines of teletext (ETSI EN 300 706). All are in magazine 8. */
export function teletextLines(sent: SentPage): Uint8Array[] {
  const { page, option = 0, rows = {}, triplets = [], sets } = sent;
  const lines = [header(page, option)];
  if (sets) lines.push(line(28, [hamming84(0), ...setTriplets(sets), ...Array(40).fill(0)].slice(0, 40)));
  if (triplets.length > 0) {
    const ended = [...triplets, ...Array(13).fill([63, 31, 127])].slice(0, 13) as [number, number, number][];
    const bits = ended.map(([address, mode, data]) => address | (mode << 6) | (data << 11));
    lines.push(line(26, [hamming84(0), ...bits.flatMap(hamming2418)]));
  }
  for (const [row, text] of Object.entries(rows))
    lines.push(
      line(
        Number(row),
        [...text.padEnd(40)].slice(0, 40).map((c) => oddParity(c.charCodeAt(0))),
      ),
    );
  return [...lines, header(0xff, option)];
}

/** A PES packet of DVB teletext (ETSI EN 300 472) as transport packets. */
export function teletextPackets(lines: readonly Uint8Array[], pts: number, pid: number): Uint8Array[] {
  const units = lines.map((bytes) => [0x03, 44, 0xe7, 0xe4, ...bytes]);
  while ((45 + 1 + 46 * units.length) % 184 !== 0) units.push([0xff, 44, ...Array(44).fill(0xff)]);
  return unitPackets([0x10, ...units.flat()], pts, pid);
}

/** The packets of a PES packet of private data, padded to whole packets. */
export function unitPackets(given: readonly number[], pts: number, pid: number): Uint8Array[] {
  const data = [...given];
  while ((data.length + 45) % 184 !== 0) data.push(0xff);
  const time = [
    0x21 | (Math.floor(pts / 2 ** 30) << 1), (pts >>> 22) & 255, ((pts >>> 14) & 0xfe) | 1, (pts >>> 7) & 255,
    ((pts << 1) & 0xfe) | 1,
  ]; // biome-ignore format: a table
  const length = data.length + 39;
  const pes = [
    0,
    0,
    1,
    0xbd,
    length >> 8,
    length & 255,
    0x84,
    0x80,
    36,
    ...time,
    ...Array(31).fill(0xff),
    ...data,
  ];
  return Array.from({ length: pes.length / 184 }, (_, index) => {
    const start = index === 0 ? 0x40 : 0;
    return Uint8Array.of(
      0x47,
      start | (pid >> 8),
      pid & 255,
      0x10 | (index & 15),
      ...pes.slice(184 * index, 184 * (index + 1)),
    );
  });
}

/** Adds a teletext stream with these subtitle pages of magazine 8 to a transport stream whose PMT is in one packet. */
export function withTeletext(
  ts: Uint8Array,
  {
    pmtPid,
    pid,
    pages,
    descriptor = teletextDescriptor(pages),
    sent,
  }: {
    readonly pmtPid: number;
    readonly pid: number;
    readonly pages: readonly (readonly [language: string, page: number, type: number])[];
    /** Another descriptor for a stream that is not teletext. */
    readonly descriptor?: readonly number[];
    /** Packets to insert before the first packet of video with this or a later DTS. */
    readonly sent: readonly { readonly pts: number; readonly packets: readonly Uint8Array[] }[];
  },
): Uint8Array {
  const out: Uint8Array[] = [];
  const waiting = [...sent];
  let continuity = 0;
  for (let at = 0; at < ts.length; at += 188) {
    const packet = ts.slice(at, at + 188);
    const own = ((packet[1]! & 31) << 8) | packet[2]!;
    if (own === pmtPid) {
      out.push(withStream(packet, pid, descriptor));
      continue;
    }
    const video = packet.indexOf(0xe0);
    const isVideo =
      (packet[1]! & 0x40) !== 0 && video > 0 && packet[video - 1] === 1 && packet[video - 2] === 0;
    const pts = isVideo ? timeAt(packet, video + 6) : -1;
    while (waiting[0] && waiting[0].pts <= pts)
      for (const next of waiting.shift()!.packets) {
        next[3] = 0x10 | (continuity++ & 15);
        out.push(next);
      }
    out.push(packet);
  }
  const joined = new Uint8Array(188 * out.length);
  for (const [index, packet] of out.entries()) joined.set(packet, 188 * index);
  return joined;
}

function timeAt(bytes: Uint8Array, at: number): number {
  const [a, b, c, d, e] = bytes.subarray(at, at + 5);
  return ((a! >> 1) & 7) * 2 ** 30 + ((b! << 22) | ((c! >> 1) << 15) | (d! << 7) | (e! >> 1));
}

function teletextDescriptor(
  pages: readonly (readonly [language: string, page: number, type: number])[],
): number[] {
  const described = pages.flatMap(([language, page, type]) => [
    ...[...language].map((c) => c.charCodeAt(0)), type << 3, page,
  ]); // biome-ignore format: a table
  return [0x56, described.length, ...described];
}

function withStream(packet: Uint8Array, pid: number, descriptor: readonly number[]): Uint8Array {
  const start = 5 + packet[4]!;
  const length = 3 + (((packet[start + 1]! & 15) << 8) | packet[start + 2]!);
  const section = packet.subarray(start, start + length - 4);
  const stream = [6, 0xe0 | (pid >> 8), pid & 255, 0xf0, descriptor.length, ...descriptor];
  const changed = Uint8Array.of(...section, ...stream, 0, 0, 0, 0);
  changed[2] = changed.length - 3;
  new DataView(changed.buffer).setUint32(changed.length - 4, crc32Mpeg(changed, 0, changed.length - 4));
  const written = packetsOfSection(changed, ((packet[1]! & 31) << 8) | packet[2]!);
  if (written.length !== 188) throw new Error("the PMT needs two packets");
  written[3] = packet[3]!;
  return written;
}

function header(page: number, option: number): Uint8Array {
  const own = page !== 0xff;
  // Erase (C4), subtitle (C6), serial (C11) and the national option (C12 to C14).
  const digits = [page & 15, page >> 4, 0, own ? 8 : 0, 0, own ? 8 : 0, 0];
  const last = 1 | ((option & 4) >> 1) | ((option & 2) << 1) | ((option & 1) << 3);
  return line(0, [...[...digits, last].map(hamming84), ...Array(32).fill(oddParity(0x20))]);
}

function setTriplets([first, second]: readonly [number, number]): number[] {
  return [(first << 7) | ((second & 15) << 14), second >> 4].flatMap(hamming2418);
}

/** Magazine 8 is 0 on the line. */
function line(row: number, bytes: readonly number[]): Uint8Array {
  const all = [hamming84((row & 1) << 3), hamming84(row >> 1), ...bytes];
  return Uint8Array.from(all, (byte) =>
    Number.parseInt(byte.toString(2).padStart(8, "0").split("").reverse().join(""), 2),
  );
}

function oddParity(code: number): number {
  const ones = code.toString(2).replaceAll("0", "").length;
  return ones % 2 === 1 ? code : code | 0x80;
}

/** EN 300 706 8.2, by its equations: P1 D1 P2 D2 P3 D3 P4 D4, the first bit is the lowest. */
function hamming84(value: number): number {
  const [d1, d2, d3, d4] = [0, 1, 2, 3].map((bit) => (value >> bit) & 1) as [number, number, number, number];
  const [p1, p2, p3] = [1 ^ d1 ^ d3 ^ d4, 1 ^ d1 ^ d2 ^ d4, 1 ^ d1 ^ d2 ^ d3];
  const p4 = 1 ^ p1 ^ d1 ^ p2 ^ d2 ^ p3 ^ d3 ^ d4;
  return [p1, d1, p2, d2, p3, d3, p4, d4].reduce((sum, bit, index) => sum | (bit << index), 0);
}

/** EN 300 706 8.3: the positions that are powers of two, and the last one, are odd parity. */
function hamming2418(value: number): number[] {
  const bits: number[] = Array(25).fill(0);
  let next = 0;
  for (let position = 1; position < 24; position++)
    if (![1, 2, 4, 8, 16].includes(position)) bits[position] = (value >> next++) & 1;
  for (const check of [1, 2, 4, 8, 16])
    bits[check] = bits.slice(1, 24).reduce((sum, bit, index) => sum ^ ((index + 1) & check ? bit : 0), 1);
  bits[24] = bits.slice(1, 24).reduce((sum, bit) => sum ^ bit, 1);
  const word = bits.slice(1).reduce((sum, bit, index) => sum | (bit << index), 0);
  return [word & 255, (word >> 8) & 255, (word >> 16) & 255];
}
