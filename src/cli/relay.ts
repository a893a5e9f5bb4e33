import { addressText } from "../base/address.ts";
import type { Log } from "../base/log.ts";
import type { TransferLease } from "../playback/contract.ts";
import type { Config } from "../settings/settings.ts";
import type { ContentSelector, LiveControl } from "../transfer/contract.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { announcedAddresses } from "./own-addresses.ts";
import { joinRelay, notLive } from "./relay-desk.ts";
import { readRelayPass } from "./relay-pass.ts";
import { relayState, relayStatus, relayText } from "./relay-text.ts";
import { withSteadyPort } from "./second-engine.ts";
import { selectorOf } from "./selector.ts";
import { openService } from "./service.ts";
import { type StatusLine, statusLineOf } from "./status-line.ts";
import { aborted, stopSignals } from "./stop-signals.ts";

/** Update interval of the status line on a terminal, and of plain lines elsewhere. */
const STATUS_MS = 500;
const PLAIN_STATUS_MS = 60_000;
/** `sluice relay`: joins a live stream and forwards it until SIGINT or SIGTERM. Resolves to the exit code. */
export async function relay(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const named = args.operands[0];
  if (named === undefined)
    throw usageError("relay: expected a link, a magnet, an infohash, a transport file or its URL");
  const selector = await selectorOf(named);
  const passFile = args.flags.get("pass");
  const pass = typeof passFile === "string" ? await readRelayPass(passFile, context.runtime) : undefined;
  const stop = stopSignals(log);
  const status = statusLineOf(context.stderr, PLAIN_STATUS_MS);
  try {
    const steady = await withSteadyPort(config, `relay ${nameOf(selector, named)}`, context.runtime, log);
    // A relay serves the live window, so it uses the disk as the settings allow.
    const own = { ...steady, liveLimit: config.liveLimit };
    const service = await openService({ ...context, config: own, log });
    try {
      const addresses = announcedAddresses(steady, service.p2pPort);
      const texts = addresses.map(addressText);
      const json = `${JSON.stringify({ p2p_port: service.p2pPort, addresses: texts })}\n`;
      context.stdout.write(args.flags.has("json") ? json : relayText(texts, service.p2pPort));
      const lease = await joinRelay(service.engine, selector, {
        ...{ clock: context.runtime.clock, log, signal: stop.signal, pass },
        onProgress({ connectedPeers }) {
          const peers = `${connectedPeers} ${connectedPeers === 1 ? "peer" : "peers"}`;
          status.show(`joining · ${peers}`, performance.now());
        },
        onRetry: () => status.end(),
      });
      if (lease !== undefined) await forward(lease, status, stop.signal);
      log.info("stopping");
      return 0;
    } finally {
      status.end();
      await service.close();
    }
  } finally {
    stop.release();
  }
}

async function forward(lease: TransferLease, status: StatusLine, signal: AbortSignal): Promise<void> {
  const { live, name } = lease.transfer;
  if (live === undefined) {
    lease.release();
    throw notLive(name);
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

/** Returns the same name for different ways to name a stream (link, magnet, infohash), if possible. */
function nameOf(selector: ContentSelector, named: string): string {
  if (selector.kind === "infohash") return selector.infohash;
  return (/urn:btih:([0-9a-z]+)/i.exec(named)?.[1] ?? named).toLowerCase();
}
