import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { TunerControlRequest } from "../wire/tuner/control.ts";
import { frequencyOf, type TunerLineup, type TunerProgramme } from "./tuner-lineup.ts";

/** A stream that the tuner sends. */
export interface TunerStream {
  /** Figures of the last second. */
  readonly bitsPerSecond: number;
  readonly packetsPerSecond: number;
  stop(): void;
}

/** Where a client wants a stream. */
export interface TunerTarget {
  readonly address: PeerAddress;
  readonly isRtp: boolean;
}

/** Dependencies of {@link VirtualTuner}. */
export interface VirtualTunerDependencies {
  readonly clock: Pick<Clock, "now">;
  /** Sends a channel to a target until it is stopped; calls `ended` if the stream ends by itself. */
  send(programme: TunerProgramme, target: TunerTarget, ended: () => void): TunerStream;
}

/** A connection of a client. */
export interface TunerClient {
  readonly host: string;
}

/** The request was refused; the text is for the client's user. */
export class TunerRefusal extends Error {}

/** A lock ends this long after the last request with its key, unless a stream runs: its client may have crashed. */
const LOCK_MS = 60_000;
/** Clients cannot receive on privileged ports. */
const MIN_PORT = 1_024;
const ALL_PIDS = "0x0000-0x1fff";
const CHANNEL_MAP = "us-bcast";
/** The modulation that clients expect on {@link CHANNEL_MAP}. */
const MODULATION = "8vsb";

/** The names of the variables of a tuner after `/tuner<n>/`. */
export const TUNER_VARIABLES = [
  ...["channel", "channelmap", "debug", "filter", "lockkey", "program", "status", "streaminfo", "target"],
  ...["vchannel", "vstatus"],
];

/** One of the tuners of the engine: the channel that a client has chosen, its lock, and where the stream goes. */
export class VirtualTuner {
  readonly #dependencies: VirtualTunerDependencies;
  #channel = "none";
  #frequency = 0;
  #programme = 0;
  #lock: { readonly key: number; readonly host: string; usedAt: Instant } | undefined;
  #stream:
    | { readonly stream: TunerStream; readonly target: string; readonly client: TunerClient }
    | undefined;

  constructor(dependencies: VirtualTunerDependencies) {
    this.#dependencies = dependencies;
  }

  /** Reads or changes a variable and returns its value. Throws {@link TunerRefusal}. */
  handle(
    name: string,
    { value, lockKey }: TunerControlRequest,
    client: TunerClient,
    lineup: TunerLineup,
  ): string {
    if (value !== undefined) {
      if (name !== "lockkey") this.#checkLock(lockKey);
      this.#set(name, value.trim(), lockKey, client, lineup);
    }
    return this.#get(name, lineup);
  }

  isSendingTo(client: TunerClient): boolean {
    return this.#stream?.client === client;
  }

  /** Ends the stream that a client has started: its connection has closed. */
  left(client: TunerClient): void {
    if (this.#stream?.client === client) this.#stop();
  }

  close(): void {
    this.#stop();
  }

  #get(name: string, lineup: TunerLineup): string {
    const programme = this.#chosen(lineup);
    const hasSignal = lineup.at(this.#frequency).length > 0 || programme !== undefined;
    const { bitsPerSecond = 0, packetsPerSecond = 0 } = this.#stream?.stream ?? {};
    const level = hasSignal ? 100 : 0;
    const signal = `ch=${this.#channel} lock=${hasSignal ? MODULATION : "none"} ss=${level} snq=${level} seq=${level}`;
    switch (name) {
      case "channel":
        return this.#channel;
      case "channelmap":
        return CHANNEL_MAP;
      case "filter":
        return ALL_PIDS;
      case "program":
        return String(this.#programme);
      case "vchannel":
        return this.#programme === 0 || !programme ? "none" : programme.number;
      case "status":
        return `${signal} bps=${bitsPerSecond} pps=${packetsPerSecond}`;
      case "vstatus":
        return `vch=${programme?.number ?? "none"} name=${programme?.name ?? "none"} auth=unspecified cci=none cgms=none`;
      case "streaminfo":
        return lineup.describe(this.#frequency);
      case "debug":
        return `tun: ${signal} dbg=0\nnet: bps=${bitsPerSecond} pps=${packetsPerSecond} target=${this.#target}\n`;
      case "lockkey":
        return this.#present()?.host ?? "none";
      case "target":
        return this.#target;
      default:
        throw new TunerRefusal("unknown getset variable");
    }
  }

  #set(name: string, value: string, lockKey: number, client: TunerClient, lineup: TunerLineup): void {
    const isFixed = name === "channelmap" ? value === CHANNEL_MAP : name === "filter" && value === ALL_PIDS;
    if (name === "channel") this.#tune(value);
    else if (name === "vchannel")
      this.#choose(value === "none" ? undefined : lineup.numbered(value), value === "none");
    else if (name === "program") this.#selectProgramme(value, lineup);
    else if (name === "target" && value === "none") this.#stop();
    else if (name === "target") this.#aim(value, client, lineup);
    else if (name === "lockkey") this.#setLock(value, lockKey, client);
    else if (name === "channelmap" && !isFixed)
      throw new TunerRefusal(`the only channel map is ${CHANNEL_MAP}`);
    else if (name === "filter" && !isFixed)
      throw new TunerRefusal("this tuner sends whole channels; it has no PID filter");
    else if (!isFixed)
      throw new TunerRefusal(
        TUNER_VARIABLES.includes(name) ? "this variable can only be read" : "unknown getset variable",
      );
  }

  /** Tunes to a frequency, such as `auto:473000000`, `8vsb:14` or `none`. */
  #tune(value: string): void {
    const number = /^(?:[a-z0-9-]{1,20}:)?(\d{1,10})$/.exec(value)?.[1];
    const frequency = number === undefined ? undefined : frequencyOf(Number(number));
    if (frequency === undefined && value !== "none") throw new TunerRefusal("unknown channel");
    this.#stop();
    [this.#channel, this.#frequency, this.#programme] = [value, frequency ?? 0, 0];
  }

  #choose(programme: TunerProgramme | undefined, isNone: boolean): void {
    if (!programme && !isNone) throw new TunerRefusal("unknown channel");
    this.#stop();
    this.#frequency = programme?.frequency ?? 0;
    this.#programme = programme?.programme ?? 0;
    this.#channel = this.#frequency > 0 ? `${MODULATION}:${this.#frequency}` : "none";
  }

  #selectProgramme(value: string, lineup: TunerLineup): void {
    const number = value === "none" ? 0 : /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
    if (number !== 0 && !lineup.programme(number)) throw new TunerRefusal("unknown program");
    if (number !== this.#programme) this.#stop();
    this.#programme = number;
  }

  #aim(value: string, client: TunerClient, lineup: TunerLineup): void {
    const [, scheme, host, port] = /^(?:(udp|rtp):\/\/)?([^/]+?):(\d{1,5})$/.exec(value) ?? [];
    if (host === undefined) throw new TunerRefusal("expected a target such as udp://192.168.1.2:5000");
    // A stream to any other address would let a client flood it.
    if (canonicalAddress(host.replace(/^\[(.*)\]$/, "$1")) !== client.host)
      throw new TunerRefusal("the target must be the address of the client");
    if (Number(port) < MIN_PORT || Number(port) > 65_535)
      throw new TunerRefusal(`the port of the target must be ${MIN_PORT} to 65535`);
    const programme = this.#chosen(lineup);
    if (!programme) throw new TunerRefusal("no channel is tuned");
    this.#stop();
    const address = { host: client.host, port: Number(port) };
    const stream = this.#dependencies.send(programme, { address, isRtp: scheme === "rtp" }, () => {
      if (this.#stream?.stream === stream) this.#stream = undefined;
    });
    this.#stream = { stream, target: value, client };
  }

  #setLock(value: string, lockKey: number, { host }: TunerClient): void {
    if (value !== "force") this.#checkLock(lockKey);
    if (value === "none" || value === "force") {
      this.#lock = undefined;
      if (value === "force") this.#stop();
      return;
    }
    const key = /^\d{1,10}$/.test(value) ? Number(value) : 0;
    if (key === 0 || key > 0xffffffff) throw new TunerRefusal("expected a key of 32 bits, none or force");
    this.#lock = { key, host, usedAt: this.#dependencies.clock.now() };
  }

  #checkLock(lockKey: number): void {
    const lock = this.#present();
    if (lock && lock.key !== lockKey) throw new TunerRefusal(`resource locked by ${lock.host}`);
    if (lock) lock.usedAt = this.#dependencies.clock.now();
  }

  /** The lock, unless it has expired. */
  #present() {
    const { clock } = this.#dependencies;
    if (this.#lock && !this.#stream && after(this.#lock.usedAt, LOCK_MS) <= clock.now())
      this.#lock = undefined;
    return this.#lock;
  }

  /** The programme that was chosen, else the first one on the frequency. */
  #chosen(lineup: TunerLineup): TunerProgramme | undefined {
    return this.#programme === 0 ? lineup.at(this.#frequency)[0] : lineup.programme(this.#programme);
  }

  get #target(): string {
    return this.#stream?.target ?? "none";
  }

  #stop(): void {
    this.#stream?.stream.stop();
    this.#stream = undefined;
  }
}
