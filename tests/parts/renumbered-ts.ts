import { PAT_PID, renumberPmt } from "../../src/media/psi.ts";
import { pidAt, TS_PACKET_BYTES } from "../../src/media/ts-packet.ts";
import { TableReader } from "../../src/media/ts-tables.ts";
import { TablesWriter } from "../../src/remux/ts-tables-writer.ts";

/** Returns a stream with other PIDs, and another programme number if there are any; all descriptors are kept. `reader` keeps the tables for the
 * next packets of the stream. */
export function renumbered(
  packets: Uint8Array,
  pids: ReadonlyMap<number, number>,
  reader = new TableReader(),
): Uint8Array {
  if (pids.size === 0) return packets;
  const out = Uint8Array.from(packets);
  for (let at = 0; at < packets.length; at += TS_PACKET_BYTES)
    if (reader.wants(pidAt(packets, at))) reader.push(packets, at);
  const tables = reader.tables(true)!;
  const pidFor = (pid: number) => pids.get(pid) ?? pid;
  const programme = tables.pmt.programme + 1;
  const section = renumberPmt(tables.pmtSection, programme, pidFor);
  const writer = new TablesWriter(pidFor(tables.pmtPid), programme, section);
  for (let at = 0; at < out.length; at += TS_PACKET_BYTES) {
    const pid = pidAt(out, at);
    if (pid === PAT_PID) at = writer.write(out, at, out[at + 3]! & 15) - TS_PACKET_BYTES;
    else out.set([(out[at + 1]! & 0xe0) | (pidFor(pid) >> 8), pidFor(pid) & 0xff], at + 1);
  }
  return out;
}
