import { addressText } from "../base/address.ts";
import { messageOf, SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ContentSelector } from "../engine/contract.ts";
import type { TransferLease } from "../engine/engine.ts";
import type { LiveControl } from "../engine/live/contract.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { type House, openHouse } from "./house.ts";
import { toldAddresses } from "./lan-addresses.ts";
import { relayState, relayStatus, relayText } from "./relay-text.ts";
import { selectorOf } from "./selector.ts";
import { type StatusLine, statusLineOf } from "./status-line.ts";
import { withSteadyPort } from "./steady-port.ts";
import { aborted, stopSignals } from "./stop-signals.ts";
import { usageError } from "./usage.ts";

/** How often the status line changes on a terminal, and comes where there is none. */
const STATUS_MS = 500;
const PLAIN_STATUS_MS = 60_000;
/** A relay outlives its source: what cannot be joined now is tried again so often. */
const RETRY_MS = 10_000;
/** What time may mend. */
const PASSING: readonly SluiceErrorCode[] = [
  "no_peers",
  "metadata_timeout",
  "start_timeout",
  "url_unreachable",
];

/** `sluice relay`: joins a live stream to hand it on, until SIGINT or SIGTERM. Resolves to the exit code. */
export async function relay(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const named = args.operands[0];
  if (named === undefined)
    throw usageError("relay: name the stream: its link, magnet, infohash, transport file or that file's URL");
  const selector = await selectorOf(named);
  const stop = stopSignals(log);
  const status = statusLineOf(context.stderr, PLAIN_STATUS_MS);
  try {
    const steady = await withSteadyPort(config, `relay ${nameOf(selector, named)}`, context.runtime, log);
    // What it keeps is what it is for.
    const own = { ...steady, liveLimit: config.liveLimit };
    const house = await openHouse({ ...context, config: own, log });
    try {
      const addresses = toldAddresses(steady, house.p2pPort);
      context.stdout.write(relayText(addresses.map(addressText), house.p2pPort));
      const lease = await joined(house, selector, status, log, stop.signal);
      if (lease !== undefined) await handOn(lease, status, stop.signal);
      log.info("stopping");
      return 0;
    } finally {
      status.end();
      await house.close();
    }
  } finally {
    stop.release();
  }
}

/** Joins, as often as it takes; undefined where the user has stopped it. */
async function joined(
  house: House,
  selector: ContentSelector,
  status: StatusLine,
  log: Log,
  signal: AbortSignal,
): Promise<TransferLease | undefined> {
  while (!signal.aborted) {
    try {
      return await house.engine.acquire(selector, {
        signal,
        allowPrivateUrls: true,
        liveRole: "relay",
        onProgress: ({ connectedPeers }) => {
          const peers = `${connectedPeers} ${connectedPeers === 1 ? "peer" : "peers"}`;
          status.show(`joining · ${peers}`, performance.now());
        },
      });
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof SluiceError) || !PASSING.includes(error.code)) throw error;
      status.end();
      log.warn("not joined yet; trying again", { why: messageOf(error), seconds: RETRY_MS / 1000 });
      await pause(RETRY_MS, signal);
    }
  }
  return undefined;
}

async function handOn(lease: TransferLease, status: StatusLine, signal: AbortSignal): Promise<void> {
  const { live, name } = lease.transfer;
  if (live === undefined) {
    lease.release();
    throw new SluiceError("unsupported_content", `${name} is no live stream; only those are relayed`);
  }
  const showing = setInterval(() => {
    const figures = { ...live.figures(), ...ratesOf(lease, live) };
    status.show(relayStatus(name, figures), performance.now(), relayState(figures));
  }, STATUS_MS);
  try {
    await aborted(signal);
  } finally {
    clearInterval(showing);
    lease.release();
  }
}

function ratesOf({ transfer }: TransferLease, live: LiveControl) {
  const { bytesPerSecondDown, bytesPerSecondUp } = transfer.figures;
  return { bytesPerSecondDown, bytesPerSecondUp, isForked: live.isForked };
}

/** What stays the same however the stream is named, where that can be told. */
function nameOf(selector: ContentSelector, named: string): string {
  if (selector.kind === "infohash") return selector.infohash;
  return (/urn:btih:([0-9a-z]+)/i.exec(named)?.[1] ?? named).toLowerCase();
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done, { once: true });
  });
}
