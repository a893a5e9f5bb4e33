import { addressBytes } from "../../base/address.ts";
import { type AddressRanges, AddressRangesBuilder } from "../../base/address-ranges.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { FileFacts, Runtime } from "../../runtime/contract.ts";
import { addressWords, parseIpListLine } from "../../wire/ip-list.ts";
import { textLines } from "./text-lines.ts";

/** Whether an address may be talked to at all; `host` is canonical. */
export type MayTalkTo = (host: string) => boolean;

/** A list that is followed. */
export interface IpFilter {
  readonly mayTalkTo: MayTalkTo;
  /** Ranges in force. */
  readonly count: number;
  close(): void;
}

/** Lists are brought up to date once a day or so; to look whether one was costs nothing. */
const LOOK_MS = 30_000;
/** 64 MB of memory; the largest lists in use have a few hundred thousand. */
const MAX_RANGES = 8_000_000;

interface Ranges {
  readonly v4: AddressRanges;
  readonly v6: AddressRanges;
}

/**
 * Reads a list of addresses that are not talked to, and again whenever the file has changed. Rejects with `bad_configuration`
 * where it cannot be read at the start; later the list that was read last stays in force. An empty path stands for no list.
 */
export async function openIpFilter(
  path: string,
  { clock, files }: Pick<Runtime, "clock" | "files">,
  log: Log,
): Promise<IpFilter> {
  if (path === "") return { mayTalkTo: () => true, count: 0, close() {} };
  let facts = await files.stat(path).catch(() => undefined);
  let ranges = await read(path, { files }, log).catch((error: unknown) => {
    const advice = "name another one with --ip-filter, or none";
    const message = `the list ${path} cannot be read (${messageOf(error)}); ${advice}`;
    throw new SluiceError("bad_configuration", message, { cause: error });
  });
  let isClosed = false;
  let cancel = () => {};
  const look = async () => {
    const now = await files.stat(path);
    if (now === undefined || isSame(now, facts)) return;
    facts = now;
    ranges = await read(path, { files }, log);
  };
  const next = () => {
    cancel = clock.at(after(clock.now(), LOOK_MS), () => {
      look()
        .catch((error) =>
          log.warn("the list of addresses stays as it was", { path, reason: messageOf(error) }),
        )
        .finally(() => {
          if (!isClosed) next();
        });
    });
  };
  next();
  return {
    mayTalkTo(host) {
      const bytes = addressBytes(host);
      if (bytes === undefined) return true;
      return !(bytes.length === 4 ? ranges.v4 : ranges.v6).has(addressWords(bytes));
    },
    get count() {
      return ranges.v4.count + ranges.v6.count;
    },
    close() {
      isClosed = true;
      cancel();
    },
  };
}

async function read(path: string, { files }: Pick<Runtime, "files">, log: Log): Promise<Ranges> {
  const [v4, v6] = [new AddressRangesBuilder(1), new AddressRangesBuilder(4)];
  let number = 0;
  let bad = 0;
  let firstBad = 0;
  for await (const lines of textLines(files.parts(path))) {
    for (const line of lines) {
      number++;
      const range = parseIpListLine(line);
      if (range === "nothing") continue;
      if (range && (range.first.length === 1 ? v4 : v6).add(range.first, range.last)) continue;
      if (bad++ === 0) firstBad = number;
    }
    if (v4.count + v6.count > MAX_RANGES) throw new Error(`it has more than ${MAX_RANGES} ranges`);
  }
  if (bad > 0)
    log.warn("lines of the list of addresses cannot be read", { path, lines: bad, first: firstBad });
  const ranges = { v4: v4.build(), v6: v6.build() };
  log.info("addresses that are not talked to", { path, ranges: ranges.v4.count + ranges.v6.count });
  return ranges;
}

function isSame(a: FileFacts, b: FileFacts | undefined): boolean {
  return a.size === b?.size && a.modifiedMs === b.modifiedMs;
}
