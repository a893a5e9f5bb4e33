import { SerialQueue } from "../async/serial-queue.ts";
import { concatBytes } from "../base/bytes.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isInNetwork } from "../base/network.ts";
import { after, type Instant } from "../base/time.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import {
  readTunerControl,
  type TunerControlRequest,
  tunerControlError,
  tunerControlReply,
} from "../wire/tuner/control.ts";
import { readTunerFrame, TUNER_PORT } from "../wire/tuner/frame.ts";
import { type TunerChannel, TunerLineup } from "./tuner-lineup.ts";
import { sendToTarget, type TunerFeed } from "./tuner-sender.ts";
import { TUNER_VARIABLES, type TunerClient, TunerRefusal, VirtualTuner } from "./virtual-tuner.ts";

/** Dependencies of {@link startTunerControl}. */
export interface TunerControlDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings">;
  readonly tunerCount: number;
  /** The model and the version that clients show. */
  readonly model: string;
  readonly version: string;
  /** Returns true while clients of the local network may use the engine. */
  readonly isAllowed: () => boolean;
  /** The channels, in order. */
  channels(): Promise<readonly TunerChannel[]>;
  /** Opens a channel for the client with this address. */
  open(channel: TunerChannel, host: string, signal: AbortSignal): Promise<TunerFeed>;
  readonly log: Log;
}

/** A household has a few clients, each with one connection. */
const MAX_CONNECTIONS = 32;
/** A connection without a request for this time is closed, unless it receives a stream. */
const IDLE_MS = 10 * 60_000;
/** Requests of one connection that wait; libhdhomerun sends one at a time. */
const MAX_WAITING = 32;
/** A client that leaves this much unread has stopped reading. */
const MAX_UNSENT_BYTES = 64 * 1_024;
/** A scan reads the channels some times a second. */
const LINEUP_MS = 5_000;

/**
 * Serves the control protocol of network tuners (libhdhomerun): clients of the machine's own networks tune, scan, lock, and have a
 * channel sent to themselves, which ends with their connection. Returns a function that stops it.
 */
export function startTunerControl(dependencies: TunerControlDependencies): () => void {
  const { runtime, log } = dependencies;
  const device = new TunerDevice(dependencies);
  const sockets = new Set<TcpSocket>();
  let isClosed = false;
  const listening = runtime.net.listen({ host: "0.0.0.0", port: TUNER_PORT }, (socket) => {
    const { host } = socket.remote;
    const isOwn = runtime.surroundings.networks().some((network) => isInNetwork(host, network));
    if (!isOwn || !dependencies.isAllowed() || sockets.size >= MAX_CONNECTIONS) {
      socket.close();
      return { received() {}, drained() {}, closed() {} };
    }
    sockets.add(socket);
    return serveClient(dependencies, device, socket, () => sockets.delete(socket));
  });
  listening.then(
    (listener) => isClosed && void listener.close(),
    (error: unknown) =>
      log.warn("clients cannot control the network tuner; they can still play by HTTP", {
        port: TUNER_PORT,
        reason: messageOf(error),
      }),
  );
  return () => {
    isClosed = true;
    device.close();
    listening.then((listener) => listener.close()).catch(() => {});
  };
}

function serveClient(
  { runtime: { clock }, log, isAllowed }: TunerControlDependencies,
  device: TunerDevice,
  socket: TcpSocket,
  ended: () => void,
): TcpHandlers {
  const client: TunerClient = { host: socket.remote.host };
  const queue = new SerialQueue();
  let pending: Uint8Array = new Uint8Array(0);
  let waiting = 0;
  let isOpen = true;
  let cancelIdle = () => {};
  const expectRequest = () => {
    cancelIdle();
    cancelIdle = clock.at(after(clock.now(), IDLE_MS), () => {
      if (device.isSendingTo(client)) expectRequest();
      else socket.close();
    });
  };
  const answer = async (request: TunerControlRequest) => {
    if (!isOpen) return;
    const reply = isAllowed()
      ? await device.answer(request, client)
      : tunerControlError("access from the local network is off");
    if (!isOpen) return;
    if (socket.bufferedBytes > MAX_UNSENT_BYTES) socket.close();
    else socket.write(reply);
  };
  expectRequest();
  return {
    received(bytes) {
      expectRequest();
      pending = concatBytes([pending, bytes]);
      try {
        for (let frame = readTunerFrame(pending); frame; frame = readTunerFrame(pending)) {
          const request = readTunerControl(frame);
          pending = pending.slice(frame.length);
          if (++waiting > MAX_WAITING) return socket.close();
          void queue
            .run(() => answer(request))
            .catch((error: unknown) => {
              log.error("a request to the network tuner failed", { reason: messageOf(error) });
              socket.close();
            })
            .finally(() => waiting--);
        }
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
        // Not a client of this protocol, such as a page that requests this port.
        socket.close();
      }
    },
    drained() {},
    closed() {
      isOpen = false;
      pending = new Uint8Array(0);
      cancelIdle();
      device.left(client);
      ended();
    },
  };
}

/** The variables of the device and of its tuners. */
class TunerDevice {
  readonly #parts: TunerControlDependencies;
  readonly #tuners: readonly VirtualTuner[];
  #lineup: { readonly at: Instant; readonly lineup: Promise<TunerLineup> } | undefined;

  constructor(parts: TunerControlDependencies) {
    this.#parts = parts;
    const { runtime, tunerCount, log } = parts;
    const sender = { net: runtime.net, clock: runtime.clock, log };
    this.#tuners = Array.from(
      { length: tunerCount },
      () =>
        new VirtualTuner({
          clock: runtime.clock,
          send: (programme, target, ended) =>
            sendToTarget(
              sender,
              target,
              (signal) => parts.open(programme, target.address.host, signal),
              ended,
            ),
        }),
    );
  }

  /** Answers a request with a frame. */
  async answer(request: TunerControlRequest, client: TunerClient): Promise<Uint8Array> {
    try {
      return tunerControlReply(request.name, await this.#handle(request, client));
    } catch (error) {
      if (error instanceof TunerRefusal) return tunerControlError(error.message);
      throw error;
    }
  }

  isSendingTo(client: TunerClient): boolean {
    return this.#tuners.some((tuner) => tuner.isSendingTo(client));
  }

  left(client: TunerClient): void {
    for (const tuner of this.#tuners) tuner.left(client);
  }

  close(): void {
    for (const tuner of this.#tuners) tuner.close();
  }

  async #handle(request: TunerControlRequest, client: TunerClient): Promise<string> {
    const { name, value } = request;
    const [, index, variable] = /^\/tuner(\d{1,2})\/([a-z]+)$/.exec(name) ?? [];
    const tuner = this.#tuners[Number(index)];
    if (index !== undefined && tuner) return tuner.handle(variable!, request, client, await this.#channels());
    if (name === "/lineup/scan") {
      if (value !== undefined) this.#lineup = undefined;
      return `state=complete progress=100% found=${(await this.#channels()).size}`;
    }
    const constants = this.#constants();
    const constant = Object.hasOwn(constants, name) ? constants[name] : undefined;
    if (constant === undefined) throw new TunerRefusal("unknown getset variable");
    if (value !== undefined) throw new TunerRefusal("this variable can only be read");
    return constant;
  }

  #constants(): Readonly<Record<string, string>> {
    const { model, version } = this.#parts;
    return {
      "/sys/model": "hdhomerun4_atsc",
      "/sys/hwmodel": model,
      "/sys/version": version,
      "/sys/copyright": "Sluice, a virtual tuner",
      "/sys/features": "channelmap: us-bcast\nmodulation: 8vsb\nauto-modulation: auto\n",
      help: ["Supported configuration options:", ...OPTIONS].join("\n").concat("\n"),
    };
  }

  #channels(): Promise<TunerLineup> {
    const now = this.#parts.runtime.clock.now();
    if (this.#lineup && after(this.#lineup.at, LINEUP_MS) > now) return this.#lineup.lineup;
    const lineup = this.#parts.channels().then((channels) => new TunerLineup(channels));
    this.#lineup = { at: now, lineup };
    return lineup;
  }
}

const OPTIONS = [
  ...["/lineup/scan", "/sys/copyright", "/sys/features", "/sys/hwmodel", "/sys/model", "/sys/version"],
  ...TUNER_VARIABLES.map((name) => `/tuner<n>/${name}`),
];
