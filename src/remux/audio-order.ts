import { concatBytes, equalBytes, readU16 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { PAT_PID, parsePmt, reorderPmt } from "../media/psi.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { streamsOf } from "../media/ts-programme.ts";
import { TableReader } from "../media/ts-tables.ts";

/** The table id of a PMT (ISO 13818-1 2.4.4.4). */
const PMT_TABLE = 2;

/**
 * Puts the audio in one language first in the PMTs of a transport stream, because players choose the first audio stream.
 * Sections keep their length, so all other bytes stay where they are.
 */
export class AudioOrder {
  readonly #language: string;
  readonly #tables = new TableReader();
  #before: Uint8Array | undefined;
  #after: Uint8Array | undefined;

  /** `language` is an ISO 639-2 code. */
  constructor(language: string) {
    this.#language = language;
  }

  /** Returns the whole packets with ordered PMTs: the same array if nothing changes, else a copy. */
  apply(packets: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>;
  apply(packets: Uint8Array): Uint8Array;
  apply(packets: Uint8Array): Uint8Array {
    let result = packets;
    /** By PID: the payloads of the section that is being read. */
    const unread = new Map<number, Uint8Array[]>();
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (!this.#tables.wants(pid)) continue;
      this.#tables.push(packets, at);
      if (pid === PAT_PID) continue;
      const payload = packets.subarray(payloadStartAt(packets, at), at + TS_PACKET_BYTES);
      const isStart = isUnitStartAt(packets, at);
      if (isStart) unread.set(pid, []);
      const payloads = unread.get(pid);
      payloads?.push(isStart ? payload.subarray(1 + (payload[0] ?? 0)) : payload);
      const section = payloads && wholeSection(payloads);
      if (!section) continue;
      unread.delete(pid);
      if (this.#tables.tables(true)?.pmtPid !== pid) continue;
      const ordered = this.#ordered(section);
      if (ordered !== section) {
        if (result === packets) result = packets.slice();
        let from = 0;
        for (const { byteOffset, length } of payloads) {
          result.set(ordered.subarray(from, from + length), byteOffset - packets.byteOffset);
          from += length;
        }
      }
    }
    return result;
  }

  /** Returns the section with the preferred audio first; `section` itself if nothing changes. */
  #ordered(section: Uint8Array): Uint8Array {
    if (this.#before && this.#after && equalBytes(section, this.#before)) return this.#after;
    try {
      const streams = streamsOf(parsePmt(section));
      const audio = streams.filter(({ kind }) => kind === "audio");
      const preferred = audio.find(({ language }) => languageCode(language) === this.#language);
      if (!preferred || preferred === audio[0]) return section;
      const others = streams.filter((stream) => stream !== preferred);
      others.splice(others.indexOf(audio[0]!), 0, preferred);
      this.#after = reorderPmt(
        section,
        others.map(({ pid }) => pid),
      );
      this.#before = section;
      return this.#after;
    } catch (thrown) {
      if (thrown instanceof DecodeError) return section; // Tables are repeated.
      throw thrown;
    }
  }
}

/** Returns the PMT section at the start of the payloads once it is complete. */
function wholeSection(payloads: readonly Uint8Array[]): Uint8Array | undefined {
  const bytes = concatBytes(payloads);
  if (bytes.length < 3 || bytes[0] !== PMT_TABLE) return undefined;
  const length = 3 + (readU16(bytes, 1) & 0xfff);
  return bytes.length < length ? undefined : bytes.subarray(0, length);
}
