import { accented, defaultDesignation, g0Set, g2Character } from "./teletext-charsets.ts";

/** A teletext page with subtitles. */
export interface TeletextPage {
  /** 1 to 8. */
  readonly magazine: number;
  /** Two hexadecimal digits: 0x88 for page 888. */
  readonly page: number;
  /** ISO 639; selects the character set if the page designates none. */
  readonly language: string;
}

/** What a page shows from a time on. */
export interface TeletextState {
  readonly seconds: number;
  /** Lines of plain text; empty if the page shows nothing. */
  readonly text: string;
  /** The value that {@link TeletextDecoder.push} got with the header of the page. */
  readonly mark: number;
}

/** DVB data units with teletext (ETSI EN 300 472 table 1): without and with subtitles. */
const UNIT_IDS = [0x02, 0x03];
const UNIT_BYTES = 44;
/** The framing code, with the bit order of DVB. */
const FRAMING_CODE = 0xe4;
const LINE_BYTES = 42;
const COLUMNS = 40;
const LAST_ROW = 24;
/** Packets of a page with enhancements: the designation code has 16 values. */
const ENHANCEMENTS_LIMIT = 16;
/** Spacing attributes (ETSI EN 300 706 table 26). */
const ATTRIBUTE = {
  endBox: 0x0a,
  startBox: 0x0b,
  doubleHeight: 0x0d,
  doubleSize: 0x0f,
  conceal: 0x18,
  escape: 0x1b,
};

/** The page as it is received. */
interface Received {
  readonly seconds: number;
  readonly mark: number;
  readonly isSerial: boolean;
  /** The national option of its header. */
  readonly option: number;
}

/** Decodes the subtitles of one teletext page (ETSI EN 300 706, level 1.5) from the PES packets of DVB (EN 300 472). */
export class TeletextDecoder {
  /** What the page shows, in the order of time. The caller may remove items. */
  readonly states: TeletextState[] = [];
  readonly #page: TeletextPage;
  readonly #rows = new Map<number, Uint8Array>();
  readonly #enhancements = new Map<number, Uint8Array>();
  /** Character sets that the page (X/28) or its magazine (M/29) designates: the first and second G0 set. */
  #ownSets: readonly [number, number] | undefined;
  #magazineSets: readonly [number, number] | undefined;
  #received: Received | undefined;
  #shown = "";

  constructor(page: TeletextPage) {
    this.#page = page;
  }

  /** Decodes the data of a PES packet that is presented at `seconds`. Ignores what is damaged. */
  push(data: Uint8Array, seconds: number, mark = 0): void {
    // EN 300 472 4.3: data identifiers of EBU data.
    if (data.length === 0 || data[0]! < 0x10 || data[0]! > 0x1f) return;
    for (let at = 1; at + 2 <= data.length; at += 2 + data[at + 1]!) {
      const isTeletext = UNIT_IDS.includes(data[at]!) && data[at + 1] === UNIT_BYTES;
      if (!isTeletext || at + 2 + UNIT_BYTES > data.length || data[at + 3] !== FRAMING_CODE) continue;
      this.#packet(data.subarray(at + 4, at + 4 + LINE_BYTES), seconds, mark);
    }
  }

  /** The page that is being received: its header has come, its rows may follow. */
  get received(): Pick<TeletextState, "seconds" | "mark"> | undefined {
    return this.#received;
  }

  /** Completes the page that is being received. */
  flush(): void {
    const received = this.#received;
    this.#received = undefined;
    if (!received) return;
    const sets = this.#ownSets ?? this.#magazineSets;
    const text = pageText(
      this.#rows,
      [...this.#enhancements.values()],
      [
        g0Set(sets?.[0] ?? defaultDesignation(this.#page.language), received.option),
        g0Set(sets?.[1] ?? 0, (sets?.[1] ?? 0) & 7),
      ],
    );
    if (text === this.#shown) return;
    this.#shown = text;
    this.states.push({ seconds: received.seconds, text, mark: received.mark });
  }

  #packet(line: Uint8Array, seconds: number, mark: number): void {
    const [low, high] = [nibble(line, 0), nibble(line, 1)];
    if (low === undefined || high === undefined) return;
    const magazine = low & 7 || 8;
    const row = (high << 1) | (low >> 3);
    if (row === 0) this.#header(line, magazine, seconds, mark);
    if (row === 0 || magazine !== this.#page.magazine) return;
    if (row === 29) this.#magazineSets = designatedSets(line) ?? this.#magazineSets;
    if (!this.#received) return;
    if (row <= LAST_ROW) this.#rows.set(row, line.slice(2));
    else if (row === 28) this.#ownSets = designatedSets(line) ?? this.#ownSets;
    else if (row === 26 && this.#enhancements.size < ENHANCEMENTS_LIMIT)
      this.#enhancements.set(nibble(line, 2) ?? -1, line.slice(3));
  }

  /** A header begins a page, and ends the one before it (EN 300 706 9.3.1). */
  #header(line: Uint8Array, magazine: number, seconds: number, mark: number): void {
    const digits = Array.from({ length: 8 }, (_, index) => nibble(line, 2 + index));
    // Without its control bits a header is not usable; without its number it ends nothing.
    if (digits.includes(undefined)) return;
    const [units, tens, , s2, , , , c11] = digits as number[];
    const isSerial = (c11! & 1) === 1;
    const isOwnMagazine = magazine === this.#page.magazine;
    if (isOwnMagazine || isSerial || this.#received?.isSerial) this.flush();
    if (!isOwnMagazine || ((tens! << 4) | units!) !== this.#page.page) return;
    const isErased = (s2! & 8) !== 0;
    if (isErased) {
      this.#rows.clear();
      this.#enhancements.clear();
      this.#ownSets = undefined;
    }
    // C12 is the first of the three bits on the line, and the highest of the option.
    const option = ((c11! & 2) << 1) | ((c11! & 4) >> 1) | ((c11! & 8) >> 3);
    this.#received = { seconds, mark, isSerial, option };
  }
}

/** Reads the character sets of a packet X/28/0 or M/29/0 (EN 300 706 9.4.2); undefined if it states none. */
function designatedSets(line: Uint8Array): readonly [number, number] | undefined {
  if (nibble(line, 2) !== 0) return undefined;
  const [first, second] = [triplet(line, 3), triplet(line, 6)];
  // Page function 0 and coding 0: a basic page.
  if (first === undefined || second === undefined || (first & 0x7f) !== 0) return undefined;
  return [(first >> 7) & 0x7f, ((first >> 14) & 0x0f) | ((second & 7) << 4)];
}

/** Returns the text within the boxes of a page, or all of its text if it has no boxes. */
function pageText(
  rows: ReadonlyMap<number, Uint8Array>,
  enhancements: readonly Uint8Array[],
  sets: readonly [readonly string[], readonly string[]],
): string {
  const replaced = replacedCharacters(enhancements);
  const all: { cells: string[]; boxed: boolean[] }[] = [];
  let isHidden = false;
  for (let row = 1; row <= LAST_ROW; row++) {
    const line = rows.get(row);
    const isBelowDoubleHeight = isHidden;
    isHidden = false;
    if (!line || isBelowDoubleHeight) continue;
    const read = rowCells(line, sets);
    isHidden = read.isDoubleHeight;
    for (const [column, character] of replaced.get(row) ?? []) read.cells[column] = character;
    all.push(read);
  }
  const hasBoxes = all.some(({ boxed }) => boxed.includes(true));
  return all
    .map(({ cells, boxed }) =>
      cells.map((cell, column) => (hasBoxes && !boxed[column] ? " " : cell)).join(""),
    )
    .map((line) => line.replace(/ {2,}/g, " ").trim())
    .filter((line) => line !== "")
    .join("\n");
}

function rowCells(line: Uint8Array, sets: readonly [readonly string[], readonly string[]]) {
  const cells: string[] = [];
  const boxed: boolean[] = [];
  let isBoxed = false;
  let isMosaic = false;
  let isConcealed = false;
  let isDoubleHeight = false;
  let set = 0;
  for (let column = 0; column < COLUMNS; column++) {
    const code = REVERSED[line[column]!]! & 0x7f;
    // A character whose parity is wrong is damaged.
    const isDamaged = !isOdd(line[column]!);
    let cell = " ";
    if (code >= 0x20) {
      const isText = !isConcealed && !(isMosaic && (code & 0x20) !== 0);
      if (isText && !isDamaged) cell = sets[set === 1 ? 1 : 0][code - 0x20]!;
    } else if (!isDamaged) {
      if ((code & 0x08) === 0) {
        isMosaic = code >= 0x10;
        isConcealed = false;
      }
      if (code === ATTRIBUTE.startBox) isBoxed = true;
      else if (code === ATTRIBUTE.endBox) isBoxed = false;
      else if (code === ATTRIBUTE.doubleHeight || code === ATTRIBUTE.doubleSize) isDoubleHeight = true;
      else if (code === ATTRIBUTE.conceal) isConcealed = true;
      else if (code === ATTRIBUTE.escape) set ^= 1;
    }
    cells.push(cell);
    boxed.push(isBoxed);
  }
  return { cells, boxed, isDoubleHeight };
}

/** Characters that packets X/26 put into the page, by row and column (EN 300 706 12.3, level 1.5). */
function replacedCharacters(enhancements: readonly Uint8Array[]): Map<number, Map<number, string>> {
  const rows = new Map<number, Map<number, string>>();
  let row = -1;
  for (const line of enhancements) {
    for (let index = 0; index < 13; index++) {
      const bits = triplet(line, 3 * index);
      if (bits === undefined) continue;
      const [address, mode, data] = [bits & 0x3f, (bits >> 6) & 0x1f, bits >> 11];
      if (address >= COLUMNS) {
        if (mode === 0x1f) break; // Termination.
        if (mode === 0x01 || mode === 0x04) row = address - COLUMNS || LAST_ROW;
        continue;
      }
      if (data < 0x20 || (mode !== 0x0f && mode < 0x10)) continue;
      const own = rows.get(row) ?? new Map<number, string>();
      own.set(address, mode === 0x0f ? g2Character(data) : accented(data, mode & 0x0f));
      rows.set(row, own);
    }
  }
  return rows;
}

const REVERSED = Uint8Array.from({ length: 256 }, (_, byte) => {
  let reversed = 0;
  for (let bit = 0; bit < 8; bit++) if (byte & (1 << bit)) reversed |= 0x80 >> bit;
  return reversed;
});

/** The 16 code words of Hamming 8/4 (EN 300 706 8.2), as a map from all bytes with at most one wrong bit; 255 for the others. */
const NIBBLES = (() => {
  const words = [
    0x15, 0x02, 0x49, 0x5e, 0x64, 0x73, 0x38, 0x2f, 0xd0, 0xc7, 0x8c, 0x9b, 0xa1, 0xb6, 0xfd, 0xea,
  ];
  const map = new Uint8Array(256).fill(255);
  for (const [value, word] of words.entries()) {
    map[word] = value;
    for (let bit = 0; bit < 8; bit++) map[word ^ (1 << bit)] = value;
  }
  return map;
})();

/** Returns the four bits of a byte with Hamming 8/4; undefined if two bits are wrong, or at the end of the line. */
function nibble(line: Uint8Array, at: number): number | undefined {
  const value = at < line.length ? NIBBLES[REVERSED[line[at]!]!]! : 255;
  return value === 255 ? undefined : value;
}

/** Returns the 18 bits of three bytes with Hamming 24/18 (EN 300 706 8.3); undefined if two bits are wrong. */
function triplet(line: Uint8Array, at: number): number | undefined {
  if (at + 3 > line.length) return undefined;
  let word = REVERSED[line[at]!]! | (REVERSED[line[at + 1]!]! << 8) | (REVERSED[line[at + 2]!]! << 16);
  let positions = 0;
  let ones = 0;
  for (let bit = 0; bit < 24; bit++) {
    if ((word & (1 << bit)) === 0) continue;
    ones++;
    if (bit < 23) positions ^= bit + 1;
  }
  // All five groups have odd parity in a valid word, and so has the whole.
  const wrong = positions ^ 31;
  if (ones % 2 === 1 ? wrong !== 0 : wrong > 23) return undefined;
  if (wrong > 0) word ^= 1 << (wrong - 1);
  return ((word >> 2) & 1) | ((word >> 3) & 0x0e) | ((word >> 4) & 0x7f0) | ((word >> 5) & 0x3f800);
}

function isOdd(byte: number): boolean {
  let bits = byte ^ (byte >> 4);
  bits ^= bits >> 2;
  return ((bits ^ (bits >> 1)) & 1) === 1;
}
