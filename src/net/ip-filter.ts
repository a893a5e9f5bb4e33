import { addressBytes } from "../base/address.ts";
import { type AddressRanges, AddressRangesBuilder } from "../base/address-ranges.ts";
import { latin1Text } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { FileFacts, Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import { addressWords, parseIpListLine } from "../wire/ip-list.ts";
import type { PeerNet, SharedUdp } from "./contract.ts";

/** Returns false if the address is blocked; `host` is canonical. */
export type IsAllowedAddress = (host: string) => boolean;

/** A list of blocked addresses that is reloaded when its file changes. */
export interface IpFilter {
  readonly isAllowed: IsAllowedAddress;
  /** Number of blocked ranges. */
  readonly count: number;
  close(): void;
}

/** Interval at which the file is checked for changes. Lists are typically updated once a day. */
const CHECK_MS = 30_000;
/** 64 MB of memory. The largest known lists have a few hundred thousand ranges. */
const MAX_RANGES = 8_000_000;

interface Ranges {
  readonly v4: AddressRanges;
  readonly v6: AddressRanges;
}

/**
 * Reads a list of blocked addresses, and again when the file changes. Rejects with `bad_configuration` if the first read fails;
 * after a later failure the previous list stays in force. An empty path means no list.
 */
export async function openIpFilter(
  path: string,
  { clock, files }: Pick<Runtime, "clock" | "files">,
  log: Log,
): Promise<IpFilter> {
  if (path === "") return { isAllowed: () => true, count: 0, close() {} };
  let facts = await files.stat(path).catch(() => undefined);
  let ranges = await read(path, { files }, log).catch((error: unknown) => {
    const advice = "correct --ip-filter, or omit it";
    const message = `cannot read the list of blocked addresses ${path} (${messageOf(error)}); ${advice}`;
    throw new SluiceError("bad_configuration", message, { cause: error });
  });
  let isClosed = false;
  let cancel = () => {};
  const check = async () => {
    const current = await files.stat(path);
    if (current === undefined || isSame(current, facts)) return;
    facts = current;
    ranges = await read(path, { files }, log);
  };
  const scheduleNext = () => {
    cancel = clock.at(after(clock.now(), CHECK_MS), () => {
      check()
        .catch((error) =>
          log.warn("cannot reload the list of blocked addresses; the previous list stays in force", {
            path,
            reason: messageOf(error),
          }),
        )
        .finally(() => {
          if (!isClosed) scheduleNext();
        });
    });
  };
  scheduleNext();
  return {
    isAllowed(host) {
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
      if (range === "ignored") continue;
      if (range && (range.first.length === 1 ? v4 : v6).add(range.first, range.last)) continue;
      if (bad++ === 0) firstBad = number;
    }
    if (v4.count + v6.count > MAX_RANGES) throw new Error(`more than ${MAX_RANGES} ranges`);
  }
  if (bad > 0)
    log.warn("skipped malformed lines in the list of blocked addresses", {
      path,
      lines: bad,
      first: firstBad,
    });
  const ranges = { v4: v4.build(), v6: v6.build() };
  log.info("blocked addresses loaded", { path, ranges: ranges.v4.count + ranges.v6.count });
  return ranges;
}

function isSame(a: FileFacts, b: FileFacts | undefined): boolean {
  return a.size === b?.size && a.modifiedMs === b.modifiedMs;
}

/** Wraps `net` so that blocked addresses are neither connected to nor accepted. */
export function filteredNet(net: PeerNet, isAllowed: IsAllowedAddress): PeerNet {
  return {
    connect(address, handlers, options) {
      if (isAllowed(address.host)) return net.connect(address, handlers, options);
      queueMicrotask(() => handlers.closed("the address is blocked by ip-filter"));
      return deadSocket(address);
    },
    listen: (address, accept) =>
      net.listen(address, (socket) => {
        if (isAllowed(socket.remote.host)) return accept(socket);
        socket.close();
        return NO_HANDLERS;
      }),
  };
}

/** Wraps `udp` so that datagrams to and from blocked addresses are dropped. */
export function filteredUdp(udp: SharedUdp, isAllowed: IsAllowedAddress): SharedUdp {
  return {
    port: udp.port,
    send(bytes, to) {
      if (isAllowed(to.host)) udp.send(bytes, to);
    },
    listen: (protocol, received) =>
      udp.listen(protocol, (bytes, from) => {
        if (isAllowed(from.host)) received(bytes, from);
      }),
    close: () => udp.close(),
  };
}

const NO_HANDLERS: TcpHandlers = { received() {}, drained() {}, closed() {} };

function deadSocket(remote: TcpSocket["remote"]): TcpSocket {
  return { remote, bufferedBytes: 0, write: () => true, pause() {}, resume() {}, close() {} };
}

/** Longer lines are truncated. */
const MAX_LINE_BYTES = 4 * 1024;
/** Limits the output of one write: gzip can expand it by a factor of 1,000. */
const SLICE_BYTES = 16 * 1024;

/** Yields batches of lines of a Latin-1 text, plain or gzip (RFC 1952). */
async function* textLines(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  let carry = "";
  for await (const part of decompressed(parts)) {
    const lines = (carry + latin1Text(part)).split(/\r?\n/);
    carry = lines.pop()!.slice(0, MAX_LINE_BYTES);
    yield lines;
  }
  if (carry !== "") yield [carry];
}

async function* decompressed(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = parts[Symbol.asyncIterator]();
  const first = await source.next();
  if (first.done) return;
  const isGzip = first.value[0] === 0x1f && first.value[1] === 0x8b;
  yield* isGzip ? gunzipped(prepended(first.value, source)) : prepended(first.value, source);
}

async function* prepended(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* gunzipped(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const writeAll = async () => {
    for await (const part of parts) {
      for (let at = 0; at < part.length; at += SLICE_BYTES) {
        await writer.write(Uint8Array.from(part.subarray(at, at + SLICE_BYTES)));
      }
    }
    await writer.close();
  };
  // An error here fails the readable side as well, which reports it.
  const written = writeAll().catch((error) => writer.abort(error).catch(() => {}));
  const reader = stream.readable.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  await written;
}
