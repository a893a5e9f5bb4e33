import { addressText } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Broadcast } from "../live/broadcast/broadcast-contract.ts";
import type { HttpListener } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import { broadcastOptions } from "./broadcast-flags.ts";
import { broadcastList } from "./broadcast-list.ts";
import { broadcastRequest } from "./broadcast-request.ts";
import { broadcastJson, broadcastStatus, broadcastText, startCommand } from "./broadcast-text.ts";
import type { Context } from "./context.ts";
import { announcedAddresses, lanAddresses, ownAddresses, ownLookup } from "./own-addresses.ts";
import { writeRelayPass } from "./relay-pass.ts";
import { withSteadyPort } from "./second-engine.ts";
import { openService, type Service } from "./service.ts";
import { type StatusLine, statusLineOf } from "./status-line.ts";
import { pipedIn } from "./stdin.ts";
import { aborted, stopSignals } from "./stop-signals.ts";

/** Update interval of the status line on a terminal, and of plain lines elsewhere. */
const STATUS_MS = 500;
const PLAIN_STATUS_MS = 60_000;
/** A new stream is measured for 3 s; the status line appears only after that. */
const QUIET_START_MS = 4000;
/** Exit code after Ctrl-C (128 + SIGINT), here before the stream is on air. */
const INTERRUPTED = 130;

/** `sluice broadcast`: runs until the source ends, SIGINT or SIGTERM. Resolves to the exit code. */
export async function broadcast(
  context: Context,
  config: Config,
  log: Log,
  args: Arguments,
): Promise<number> {
  if (args.flags.has("list")) return broadcastList(context, config, args.flags.has("json"));
  const passFile = args.flags.get("relay-pass");
  if (typeof passFile === "string") {
    const name = args.flags.get("name");
    if (typeof name !== "string") throw usageError("--relay-pass: name the stream with --name");
    return writeRelayPass(context, config, name, passFile);
  }
  const options = broadcastOptions(args, config.uploadLimit);
  if (options.source === "-" && context.stdin.isTTY)
    throw usageError(
      "broadcast: standard input is a terminal; use: ffmpeg … -f mpegts - | sluice broadcast -",
    );
  const lookup = ownLookup(context.runtime, config);
  // Report invalid parameters before anything is opened.
  await broadcastRequest(options, { lookup, ownAddresses: [], tracker: config.tracker });
  const stop = stopSignals(log);
  const status = statusLineOf(context.stderr, PLAIN_STATUS_MS);
  try {
    const steady = await withSteadyPort(config, `broadcast ${options.name}`, context.runtime, log);
    const pipe = () => pipedIn(context.stdin);
    const service = await openService({ ...context, config: steady, log, pipe });
    try {
      const own = announcedAddresses(steady, service.p2pPort);
      const request = await broadcastRequest(options, { lookup, ownAddresses: own, tracker: config.tracker });
      const waiting = showWaiting(status);
      const live = await service.engine.broadcasts
        .start(request, stop.signal)
        .finally(() => clearInterval(waiting));
      return await onAir(context, args, { service, live, status, stop: stop.signal, config, log });
    } finally {
      status.end();
      await service.close();
    }
  } catch (error) {
    if (stop.signal.aborted && isInterruption(error)) return INTERRUPTED;
    throw withAdvice(error, options.source);
  } finally {
    stop.release();
  }
}

/** Shows how long the source has sent no data, for example on a UDP port without a sender. */
function showWaiting(status: StatusLine): NodeJS.Timeout {
  const began = performance.now();
  return setInterval(() => {
    const now = performance.now();
    if (now - began < QUIET_START_MS) return;
    status.show(`waiting for the source · ${Math.round((now - began) / 1000)} s`, now);
  }, STATUS_MS);
}

interface OnAir {
  readonly service: Service;
  readonly live: Broadcast;
  readonly status: StatusLine;
  readonly stop: AbortSignal;
  readonly config: Config;
  readonly log: Log;
}

/** Shows the names of the stream, then its status until it ends. */
async function onAir(
  { stdout, environment }: Context,
  args: Arguments,
  { service, live, status, stop, config, log }: OnAir,
): Promise<number> {
  const listener = await listen(service, config, args);
  const show = () => {
    const figures = live.figures();
    status.show(broadcastStatus(figures), performance.now(), figures.health);
  };
  const showing = setInterval(show, STATUS_MS);
  try {
    const { host, port } = listener.address;
    const places = {
      p2pPort: service.p2pPort,
      httpUrl: `http://${addressText(ownAddresses(host, port, lanAddresses())[0]!)}`,
      program: startCommand(environment),
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
 * Starts an HTTP interface for previews. Only flags choose its address: variables and the config file are for `serve`, which may
 * be running.
 */
function listen(service: Service, config: Config, { settings }: Arguments): Promise<HttpListener> {
  const host = settings.has("host") ? config.host : "127.0.0.1";
  return service.listen({ host, port: settings.has("http-port") ? config.httpPort : 0 });
}

/** Adds an ffmpeg command to the error of a source that is not MPEG-TS. */
function withAdvice(error: unknown, source: string | null): unknown {
  if (!(error instanceof SluiceError)) return error;
  if (error.code !== "unsupported_container" || source === null) return error;
  const input = source === "-" ? "…" : `-re -i '${source}'`;
  const message = `${error.message}. ffmpeg can convert it: ffmpeg ${input} -c copy -f mpegts - | sluice broadcast -`;
  return new SluiceError(error.code, message, { cause: error });
}

function isInterruption(error: unknown): boolean {
  return error instanceof SluiceError ? error.code === "cancelled" : (error as Error).name === "AbortError";
}
