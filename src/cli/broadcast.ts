import { addressText } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Broadcast } from "../engine/live/broadcast-contract.ts";
import type { HttpListener } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import { broadcastWish } from "./broadcast-flags.ts";
import { broadcastList } from "./broadcast-list.ts";
import { broadcastRequest } from "./broadcast-request.ts";
import { broadcastJson, broadcastStatus, broadcastText } from "./broadcast-text.ts";
import type { Context } from "./context.ts";
import { type House, openHouse } from "./house.ts";
import { lanAddresses, ownLookup, toldAddresses } from "./lan-addresses.ts";
import { ownAddresses } from "./own-addresses.ts";
import { pipedIn } from "./piped-in.ts";
import { programWord } from "./program-word.ts";
import { type StatusLine, statusLineOf } from "./status-line.ts";
import { withSteadyPort } from "./steady-port.ts";
import { aborted, stopSignals } from "./stop-signals.ts";
import { usageError } from "./usage.ts";

/** How often the status line changes on a terminal, and comes where there is none. */
const STATUS_MS = 500;
const PLAIN_STATUS_MS = 60_000;
/** A new stream is measured for three seconds, which needs no words. */
const QUIET_START_MS = 4000;
/** What shells report for a program that Ctrl-C ended, here before its stream was on air. */
const INTERRUPTED = 130;

/** `sluice broadcast`: until the source ends, SIGINT or SIGTERM. Resolves to the exit code. */
export async function broadcast(
  context: Context,
  config: Config,
  log: Log,
  args: Arguments,
): Promise<number> {
  if (args.flags.has("list")) return broadcastList(context, config, args.flags.has("json"));
  const wish = broadcastWish(args, config.uploadLimit);
  if (wish.source === "-" && context.stdin.isTTY)
    throw usageError("broadcast: nothing is piped in; such as: ffmpeg … -f mpegts - | sluice broadcast -");
  const lookup = ownLookup(context.runtime, config);
  // What cannot be is said before anything is opened.
  await broadcastRequest(wish, { lookup, ownAddresses: [], tracker: config.tracker });
  const stop = stopSignals(log);
  const status = statusLineOf(context.stderr, PLAIN_STATUS_MS);
  try {
    const steady = await withSteadyPort(config, `broadcast ${wish.name}`, context.runtime, log);
    const pipe = () => pipedIn(context.stdin);
    const house = await openHouse({ ...context, config: steady, log, pipe });
    try {
      const own = toldAddresses(steady, house.p2pPort);
      const request = await broadcastRequest(wish, { lookup, ownAddresses: own, tracker: config.tracker });
      const waiting = showWaiting(status);
      const live = await house.engine.broadcasts
        .start(request, stop.signal)
        .finally(() => clearInterval(waiting));
      return await onAir(context, args, { house, live, status, stop: stop.signal, config, log });
    } finally {
      status.end();
      await house.close();
    }
  } catch (error) {
    if (stop.signal.aborted && isInterruption(error)) return INTERRUPTED;
    throw withAdvice(error, wish.source, config);
  } finally {
    stop.release();
  }
}

/** Says so where nothing is on air after a while, as where nobody sends to a port. */
function showWaiting(status: StatusLine): NodeJS.Timeout {
  const began = performance.now();
  return setInterval(() => {
    const now = performance.now();
    if (now - began < QUIET_START_MS) return;
    status.show(`waiting for the source · ${Math.round((now - began) / 1000)} s`, now);
  }, STATUS_MS);
}

interface OnAir {
  readonly house: House;
  readonly live: Broadcast;
  readonly status: StatusLine;
  readonly stop: AbortSignal;
  readonly config: Config;
  readonly log: Log;
}

/** Tells what the stream is called, then how it goes, until it is over. */
async function onAir(
  { stdout, environment }: Context,
  args: Arguments,
  { house, live, status, stop, config, log }: OnAir,
): Promise<number> {
  const listener = await listen(house, config, args);
  const show = () => {
    const figures = live.figures();
    status.show(broadcastStatus(figures), performance.now(), figures.health);
  };
  const showing = setInterval(show, STATUS_MS);
  try {
    const { host, port } = listener.address;
    const places = {
      p2pPort: house.p2pPort,
      httpUrl: `http://${addressText(ownAddresses(host, port, lanAddresses())[0]!)}`,
      program: programWord(environment),
      hasDht: config.dht === "on",
    };
    status.end();
    stdout.write((args.flags.has("json") ? broadcastJson : broadcastText)(live, places));
    await Promise.race([live.ended, aborted(stop)]);
    status.end();
    log.info(stop.aborted ? "stopping" : "the source has ended");
    return 0;
  } finally {
    clearInterval(showing);
    status.end();
    await live.stop();
    await listener.close();
  }
}

/**
 * Its own HTTP interface, so that whoever broadcasts can look at it with any player and without a second engine. What the
 * config file says is for `serve`, which may run beside: only flags count.
 */
function listen(house: House, config: Config, { settings }: Arguments): Promise<HttpListener> {
  const host = settings.has("host") ? config.host : "127.0.0.1";
  return house.listen({ host, port: settings.has("http-port") ? config.httpPort : 0 });
}

/** Says how to make a stream of what is none, and what to do where there is no room. */
function withAdvice(error: unknown, source: string | null, { dataDir }: Config): unknown {
  if (!(error instanceof SluiceError)) return error;
  if (error.code === "disk_full") {
    const advice = `${error.message}: make room for ${dataDir}, or choose another folder with --data-dir`;
    return new SluiceError(error.code, advice, { cause: error });
  }
  if (error.code !== "unsupported_container" || source === null) return error;
  const input = source === "-" ? "…" : `-re -i '${source}'`;
  const message = `${error.message}; ffmpeg makes it so: ffmpeg ${input} -c copy -f mpegts - | sluice broadcast -`;
  return new SluiceError(error.code, message, { cause: error });
}

function isInterruption(error: unknown): boolean {
  return error instanceof SluiceError ? error.code === "cancelled" : (error as Error).name === "AbortError";
}
