import { assert } from "../../../src/base/assert.ts";
import { concatBytes, writeU32 } from "../../../src/base/bytes.ts";
import type { Random } from "../../../src/base/random.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { ProgrammeFilter } from "../../../src/media/programme-filter.ts";
import {
  buildPat,
  buildPmt,
  crc32Mpeg,
  packetsOfSection,
  parsePat,
  parsePmt,
  reorderPmt,
} from "../../../src/media/psi.ts";
import { pidAt, TS_PACKET_BYTES } from "../../../src/media/ts-packet.ts";
import { streamsOf } from "../../../src/media/ts-programme.ts";
import { TableReader } from "../../../src/media/ts-tables.ts";
import type { FuzzTarget } from "../contract.ts";

const STREAMS = Array.from({ length: 30 }, (_, i) => ({
  streamType: [0x1b, 0x0f, 0x81, 6][i % 4]!,
  pid: 0x100 + i,
  language: "eng",
  ...(i % 4 === 3 && { registration: "EAC3" }),
}));
const PAT = buildPat({ number: 1, pmtPid: 0x1000 });
const SMALL = buildPmt({ programme: 1, version: 3, pcrPid: 0x100, streams: STREAMS.slice(0, 2) });
const LARGE = buildPmt({ programme: 1, version: 3, pcrPid: 0x100, streams: STREAMS });

/** Changes a section and fixes its checksum, so that the code behind the checksum is reached. */
function mutateSection(random: Random, seed: Uint8Array): Uint8Array {
  const section = seed.slice();
  const changes = 1 + randomBelow(random, 4);
  for (let i = 0; i < changes; i++) section[randomBelow(random, section.length)] = randomBelow(random, 256);
  section[0] = seed[0]!;
  section[1] = seed[1]!;
  section[2] = seed[2]!;
  writeU32(section, section.length - 4, crc32Mpeg(section, 0, section.length - 4));
  return section;
}

const section: FuzzTarget = {
  name: "psi",
  corpus: () => [PAT, SMALL, LARGE],
  mutate: mutateSection,
  maxBytes: 4096,
  run(bytes) {
    if (bytes[0] === 0) return parsePat(bytes);
    const pmt = parsePmt(bytes);
    const turned = streamsOf(pmt)
      .map(({ pid }) => pid)
      .reverse();
    assert(parsePmt(reorderPmt(bytes, turned)).streams.length === pmt.streams.length, "no stream is lost");
    return pmt;
  },
};

const reader: FuzzTarget = {
  name: "psi-reader",
  corpus: () => [
    concatBytes([packetsOfSection(PAT, 0), packetsOfSection(SMALL, 0x1000)]),
    concatBytes([packetsOfSection(PAT, 0), packetsOfSection(LARGE, 0x1000), packetsOfSection(SMALL, 0x1000)]),
  ],
  maxBytes: 4096,
  run(bytes) {
    const tables = new TableReader();
    for (let at = 0; at + TS_PACKET_BYTES <= bytes.length; at += TS_PACKET_BYTES) {
      if (tables.wants(pidAt(bytes, at))) tables.push(bytes, at);
    }
    return tables.tables(true);
  },
};

const filter: FuzzTarget = {
  name: "programme-filter",
  corpus: reader.corpus,
  run(bytes) {
    const packets = bytes.subarray(0, bytes.length - (bytes.length % TS_PACKET_BYTES));
    const own = new ProgrammeFilter(1).push(packets);
    assert(own.length <= packets.length, "a programme is a part of the stream");
    return own;
  },
};

export const targets: FuzzTarget[] = [filter, section, reader];
