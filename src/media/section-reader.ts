import { readU16 } from "../base/bytes.ts";

/** Limit of a section: PAT and PMT have up to 1024 bytes (ISO 13818-1 2.4.4.5), private tables up to 4096. */
const MAX_SECTION_BYTES = 4096;

/** Assembles the sections of one PID from packet payloads. A section can span payloads, and a payload can hold several sections. */
export class SectionReader {
  readonly #buffer = new Uint8Array(MAX_SECTION_BYTES);
  #length = 0;
  #isInside = false;
  #continuity = -1;

  /**
   * Adds the payload of a packet and returns copies of the sections that it completes. A lost packet (a gap in the continuity
   * counter) drops the current section.
   */
  push(payload: Uint8Array, isUnitStart: boolean, continuity: number): Uint8Array[] {
    if (this.#isInside && continuity === this.#continuity) return []; // A duplicate packet (2.4.3.3).
    if (this.#isInside && continuity !== ((this.#continuity + 1) & 15)) this.#drop();
    this.#continuity = continuity;
    const done: Uint8Array[] = [];
    let at = 0;
    if (isUnitStart) {
      at = Math.min(payload.length, 1 + (payload[0] ?? 0));
      if (this.#isInside) this.#append(payload.subarray(1, at), done);
      this.#drop();
      this.#isInside = true;
    }
    if (this.#isInside) this.#append(payload.subarray(at), done);
    return done;
  }

  #append(bytes: Uint8Array, done: Uint8Array[]): void {
    let rest = bytes;
    while (rest.length > 0 && this.#isInside) {
      if (this.#length === 0 && rest[0] === 0xff) this.#drop(); // Stuffing up to the next section start.
      if (!this.#isInside) return;
      const wanted = this.#length < 3 ? 3 : this.#sectionBytes();
      const part = rest.subarray(0, wanted - this.#length);
      this.#buffer.set(part, this.#length);
      this.#length += part.length;
      rest = rest.subarray(part.length);
      if (this.#length < 3) return;
      if (this.#sectionBytes() > MAX_SECTION_BYTES) this.#drop();
      if (!this.#isInside || this.#length < this.#sectionBytes()) continue;
      done.push(this.#buffer.slice(0, this.#length));
      this.#length = 0;
    }
  }

  #sectionBytes(): number {
    return 3 + (readU16(this.#buffer, 1) & 0xfff);
  }

  #drop(): void {
    this.#isInside = false;
    this.#length = 0;
  }
}
