import { CAPTION_TYPE, type CaptionTriplets } from "./caption-data.ts";

/** What a caption service shows from a time on. */
export interface CaptionState {
  readonly seconds: number;
  /** Lines of plain text; empty if nothing is shown. */
  readonly text: string;
}

/** Sizes of windows and of the screen (CTA-708 8.4): rows and columns are checked by their bit widths. */
const WINDOWS = 8;
const ROWS = 15;
const COLUMNS = 64;
/** States of one decoder: more changes are not readable. */
const STATES_LIMIT = 20_000;

/** Parameters of the codes 0x80 to 0x9f, in bytes (table 19). */
const C1_BYTES = [
  ...[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0],
  ...[2, 3, 2, 0, 0, 0, 0, 4, 6, 6, 6, 6, 6, 6, 6, 6],
];
const CODE = {
  ...{ etx: 0x03, back: 0x08, formFeed: 0x0c, newLine: 0x0d, clearLine: 0x0e, extended: 0x10, wide: 0x18 },
  ...{ clear: 0x88, display: 0x89, hide: 0x8a, toggle: 0x8b, remove: 0x8c, reset: 0x8f },
  ...{ penLocation: 0x92, define: 0x98 },
};
/** The second character table (G2, table 24). */
const G2: Readonly<Record<number, string>> = {
  32: " ", 33: " ", 37: "…", 42: "Š", 44: "Œ", 48: "█", 49: "‘", 50: "’", 51: "“", 52: "”",
  53: "•", 57: "™", 58: "š", 60: "œ", 61: "℠", 63: "Ÿ", 118: "⅛", 119: "⅜", 120: "⅝", 121: "⅞",
  122: "│", 123: "┐", 124: "└", 125: "─", 126: "┘", 127: "┌",
}; // biome-ignore format: a table

interface CaptionWindow {
  isVisible: boolean;
  /** Position of the anchor, which orders windows on the screen. */
  readonly top: number;
  readonly left: number;
  readonly rows: number;
  readonly lines: string[][];
  row: number;
  column: number;
}

/** Decodes one service of CEA-708 captions (CTA-708-E) to text. Ignores what is damaged. */
export class Cea708Decoder {
  readonly #service: number;
  readonly #windows: (CaptionWindow | undefined)[] = Array.from({ length: WINDOWS });
  #current = 0;
  #packet: number[] = [];
  #packetBytes = 0;
  #shown = "";
  /** The changes of the text, in order. */
  readonly states: CaptionState[] = [];

  constructor(service = 1) {
    this.#service = service;
  }

  /** Reads the caption data of a frame; frames come in the order in which they are shown. */
  push(triplets: CaptionTriplets, seconds: number): void {
    for (let at = 0; at + 3 <= triplets.length; at += 3) {
      const [type, first, second] = triplets.subarray(at, at + 3);
      if (type === CAPTION_TYPE.dtvccStart) {
        const size = first! & 63;
        [this.#packet, this.#packetBytes] = [[], size === 0 ? 127 : 2 * size - 1];
        this.#packet.push(second!);
      } else if (type === CAPTION_TYPE.dtvccData && this.#packetBytes > 0) this.#packet.push(first!, second!);
      else continue;
      if (this.#packet.length < this.#packetBytes) continue;
      this.#readPacket(this.#packet.slice(0, this.#packetBytes));
      this.#packetBytes = 0;
      this.#note(seconds);
    }
  }

  #note(seconds: number): void {
    const text = this.#text();
    if (text === this.#shown || this.states.length >= STATES_LIMIT) return;
    this.#shown = text;
    this.states.push({ seconds, text });
  }

  /** Reads the service blocks of a packet (5, 6.2). */
  #readPacket(packet: readonly number[]): void {
    for (let at = 0; at < packet.length; ) {
      let service = packet[at]! >> 5;
      const size = packet[at]! & 31;
      at++;
      if (service === 7 && size > 0) service = packet[at++]! & 63;
      if (service === 0) return;
      if (service === this.#service) this.#readBlock(packet.slice(at, at + size));
      at += size;
    }
  }

  #readBlock(block: readonly number[]): void {
    for (let at = 0; at < block.length; ) {
      const code = block[at++]!;
      if (code === CODE.extended) {
        at = this.#readExtended(block, at);
        continue;
      }
      if (code >= 0x80 && code < 0xa0) {
        const end = at + C1_BYTES[code - 0x80]!;
        if (end > block.length) return;
        this.#command(code, block.slice(at, end));
        at = end;
      } else if (code >= 0x20) this.#write(code === 0x7f ? "♪" : String.fromCharCode(code));
      else {
        const end = at + (code >= 0x18 ? 2 : code >= 0x10 ? 1 : 0);
        if (end > block.length) return;
        if (code === CODE.wide) this.#write(String.fromCharCode((block[at]! << 8) | block[at + 1]!));
        else this.#control(code);
        at = end;
      }
    }
  }

  /** Reads a code after `EXT1` and returns the position of the next one. */
  #readExtended(block: readonly number[], at: number): number {
    const code = block[at];
    if (code === undefined) return block.length;
    const next = at + 1;
    if (code < 0x20) return next + (code >> 3);
    if (code < 0x80) this.#write(G2[code] ?? "_");
    else if (code < 0x88) return next + 4;
    else if (code < 0x90) return next + 5;
    else if (code < 0xa0) return next + 1 + ((block[next] ?? 0) & 31);
    else this.#write(code === 0xa0 ? "[CC]" : "_");
    return next;
  }

  #control(code: number): void {
    const own = this.#windows[this.#current];
    if (!own) return;
    if (code === CODE.back) {
      own.column = Math.max(0, own.column - 1);
      delete own.lines[own.row]![own.column];
    } else if (code === CODE.formFeed) erase(own);
    else if (code === CODE.clearLine) {
      own.lines[own.row] = [];
      own.column = 0;
    } else if (code === CODE.newLine) {
      own.column = 0;
      if (own.row + 1 < own.rows) own.row++;
      else {
        own.lines.shift();
        own.lines.push([]);
      }
    }
  }

  #write(character: string): void {
    const own = this.#windows[this.#current];
    if (!own || own.column >= COLUMNS) return;
    own.lines[own.row]![own.column++] = character;
  }

  #command(code: number, parameters: readonly number[]): void {
    if (code < CODE.clear) this.#current = code & 7;
    else if (code >= CODE.define) this.#define(code & 7, parameters);
    else if (code === CODE.penLocation) {
      const own = this.#windows[this.#current];
      if (own) [own.row, own.column] = [Math.min(own.rows - 1, parameters[0]! & 15), parameters[1]! & 63];
    } else if (code === CODE.reset) this.#windows.fill(undefined);
    else if (code <= CODE.remove)
      for (let id = 0; id < WINDOWS; id++) if ((parameters[0]! >> id) & 1) this.#change(code, id);
  }

  #change(code: number, id: number): void {
    const own = this.#windows[id];
    if (!own) return;
    if (code === CODE.clear) erase(own);
    else if (code === CODE.display) own.isVisible = true;
    else if (code === CODE.hide) own.isVisible = false;
    else if (code === CODE.toggle) own.isVisible = !own.isVisible;
    else this.#windows[id] = undefined;
  }

  /** Defines a window and makes it the current one; one that exists keeps its text (8.10.5.2). */
  #define(id: number, [flags, top, left, size]: readonly number[]): void {
    const rows = Math.min(ROWS, (size! & 15) + 1);
    const before = this.#windows[id];
    const lines = Array.from({ length: rows }, (_, row) => before?.lines[row] ?? []);
    this.#windows[id] = {
      ...{ isVisible: (flags! & 0x20) !== 0, top: top! & 127, left: left!, rows, lines },
      row: Math.min(before?.row ?? 0, rows - 1),
      column: before?.column ?? 0,
    };
    this.#current = id;
  }

  #text(): string {
    const shown = this.#windows.filter((own) => own?.isVisible) as CaptionWindow[];
    return shown
      .sort((a, b) => a.top - b.top || a.left - b.left)
      .flatMap(({ lines }) =>
        lines.map((line) =>
          Array.from(line, (one) => one ?? " ")
            .join("")
            .trim(),
        ),
      )
      .filter((line) => line !== "")
      .join("\n");
  }
}

function erase(own: CaptionWindow): void {
  for (const row of own.lines.keys()) own.lines[row] = [];
  [own.row, own.column] = [0, 0];
}
