import { addressScope, addressText } from "../../../base/address.ts";
import { BugError } from "../../../base/assert.ts";
import { messageOf } from "../../../base/errors.ts";
import type { Instant } from "../../../base/time.ts";
import { startDeadline } from "../../../outbound/deadline.ts";
import type { OwnNetwork } from "../../../runtime/contract.ts";
import type { MappedProtocol } from "../../../wire/nat-pmp.ts";
import { hasRestarted, type RouterEpoch } from "../../../wire/router-epoch.ts";
import { pauseUntil } from "../../live/source-feed.ts";
import {
  type MappedPort,
  type MapperKind,
  type OpenMapper,
  type PortWish,
  RouterError,
  type RouterParts,
  type RouterPlace,
} from "./contract.ts";
import { HoldingMapper } from "./held-ports.ts";
import { mapPorts, releasePorts, renewPorts } from "./map-ports.ts";
import { openNatPmp } from "./nat-pmp-mapper.ts";
import { openPcp } from "./pcp-mapper.ts";
import { listenToRouter } from "./router-news.ts";
import { findRouter } from "./router-place.ts";
import { openUpnp } from "./upnp-mapper.ts";

/** Ports of ours that the router lets peers in at, kept so while we run. */
export interface PortMapping {
  /** The port at which others reach the one of ours; undefined while nothing is mapped. */
  externalPort(protocol: MappedProtocol): number | undefined;
  figures(): PortMappingFigures;
  /** Ends the mappings, and resolves when that is done, within seconds. */
  close(): Promise<void>;
}

/** How port mapping is doing. */
export interface PortMappingFigures {
  /** `unneeded`: there is no router to ask. */
  readonly state: "looking" | "mapped" | "failed" | "unneeded";
  /** Where peers reach us; the address is undefined where the router does not say. */
  readonly externalAddress: string | undefined;
  readonly externalPort: number | undefined;
  readonly by: MapperKind | undefined;
  readonly router: string | undefined;
  /** The system did not say where the router is. */
  readonly isGuessed: boolean;
  /** The router's own address is no address of the Internet: there is a further router, as many providers have one. */
  readonly isBehindAnother: boolean;
  /** Why nothing is mapped. */
  readonly problem: string | undefined;
}

/** What it is made of. */
export interface PortMappingParts extends RouterParts {
  /** The first decides which external port the others get. */
  readonly wishes: readonly PortWish[];
  readonly mayUse: (network: OwnNetwork) => boolean;
}

/** Mappings are renewed, and so seen to be there, far more often than their hour asks for: a router that has lost them is
 * not known to for so long. */
const RENEW_MS = 5 * 60_000;
/** Whether the router or our address is another is looked at so often: it costs reading a file. */
const LOOK_MS = 30_000;
/** After the n-th failure in a row it is tried again in 30 s · 2^n, at most half an hour; at once in another network. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 30 * 60_000;
/** A router that says it has news is asked at once, but not more often. */
const NEWS_GAP_MS = 10_000;
/** The end need not wait for a router that does not answer. */
const GOODBYE_MS = 2_000;
/** The best first: PCP tells of restarts and takes a datagram, NAT-PMP nearly, UPnP is what most routers have. */
const WAYS: readonly OpenMapper[] = [openPcp, openNatPmp, openUpnp];

/** Asks the router to let peers in, and goes on asking: leases end, routers restart, computers move. */
export function startPortMapping(parts: PortMappingParts): PortMapping {
  return new RunningPortMapping(parts);
}

class RunningPortMapping implements PortMapping {
  readonly #parts: PortMappingParts;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #place: RouterPlace | undefined;
  #mapper: HoldingMapper | undefined;
  #mapped: readonly MappedPort[] = [];
  #epoch: RouterEpoch | undefined;
  #problem: RouterError | undefined;
  /** What was mapped last: asked for again, so that those who know it find us. */
  #preferred = 0;
  #failures = 0;
  /** Ends the pause between two rounds. */
  #wake = new AbortController();
  #newsAt: Instant | undefined;
  #told = "";

  constructor(parts: PortMappingParts) {
    this.#parts = parts;
    this.#running = this.#run();
  }

  externalPort(protocol: MappedProtocol): number | undefined {
    return this.#mapped.find((mapped) => mapped.protocol === protocol)?.externalPort;
  }

  figures(): PortMappingFigures {
    const [first] = this.#mapped;
    return {
      state: first ? "mapped" : stateOf(this.#problem),
      externalAddress: first?.externalAddress,
      externalPort: first?.externalPort,
      by: first && this.#mapper?.kind,
      router: this.#place?.router,
      isGuessed: this.#place?.isGuessed ?? false,
      isBehindAnother: isBehindAnother(first),
      problem: first ? undefined : this.#problem?.message,
    };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const news = await listenToRouter(this.#parts, (from) => this.#heardNews(from));
    while (!signal.aborted) {
      await this.#round(signal);
      await this.#pause();
    }
    news?.close();
    await this.#release();
  }

  /** Maps what is not mapped, renews what is. */
  async #round(signal: AbortSignal): Promise<void> {
    try {
      await this.#find();
      const isRenewed = await this.#renew(signal);
      if (!isRenewed) await this.#begin(this.#place!, signal);
      this.#failures = 0;
      this.#problem = undefined;
    } catch (thrown) {
      // What is held then is given back at the end.
      if (signal.aborted) return;
      if (thrown instanceof BugError) throw thrown;
      this.#mapper = undefined;
      this.#mapped = [];
      this.#failures++;
      this.#problem = thrown instanceof RouterError ? thrown : new RouterError(messageOf(thrown));
    }
    this.#tell();
  }

  /** What another router has mapped is of no use, and out of our reach. */
  async #find(): Promise<void> {
    const { runtime, mayUse } = this.#parts;
    const before = this.#place;
    this.#place = undefined;
    const place = await findRouter(runtime.surroundings, mayUse);
    this.#place = place;
    if (isSamePlace(place, before)) return;
    this.#mapper = undefined;
    this.#mapped = [];
    this.#epoch = undefined;
  }

  async #begin(place: RouterPlace, signal: AbortSignal): Promise<void> {
    const { log, wishes, random } = this.#parts;
    const problems: RouterError[] = [];
    for (const open of WAYS) {
      try {
        const mapper = new HoldingMapper(await open(this.#parts, place, signal));
        this.#mapper = mapper;
        this.#accept(await mapPorts(mapper, wishes, this.#preferred, random, signal));
        return;
      } catch (thrown) {
        if (signal.aborted || !(thrown instanceof RouterError)) throw thrown;
        problems.push(thrown);
        log.debug("a way to map ports that does not work here", { reason: thrown.message });
      }
    }
    // Who spoke and refused says more than who was silent.
    throw problems.find(({ kind }) => kind !== "silent") ?? problems.at(-1)!;
  }

  /** False where nothing is mapped, or the router does not go on: then it is begun anew, perhaps at another port. */
  async #renew(signal: AbortSignal): Promise<boolean> {
    if (!this.#mapper) return false;
    try {
      this.#accept(await renewPorts(this.#mapper, this.#mapped, signal));
      return true;
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof RouterError)) throw thrown;
      this.#parts.log.debug("the router does not renew what it has mapped", { reason: thrown.message });
      return false;
    }
  }

  #accept(mapped: readonly MappedPort[]): void {
    const { runtime, log } = this.#parts;
    const { epochSeconds } = mapped[0]!;
    const epoch = epochSeconds === undefined ? undefined : { epochSeconds, heardAt: runtime.clock.now() };
    if (epoch && this.#epoch && hasRestarted(this.#epoch, epoch))
      log.info("the router has restarted, and lets peers in again");
    this.#mapped = mapped;
    this.#epoch = epoch;
    this.#preferred = mapped[0]!.externalPort;
  }

  /** Says what is new, once. */
  #tell(): void {
    const { log } = this.#parts;
    const [first] = this.#mapped;
    const at = first && `${first.externalAddress ?? "?"} ${first.externalPort}`;
    const said = at ?? this.#problem?.message ?? "";
    if (said === this.#told) return;
    this.#told = said;
    if (this.#problem?.kind === "unneeded") {
      log.debug("no router is asked to let peers in", { reason: said });
      return;
    }
    if (!first) {
      log.info("the router lets no peers in: those that call us do not get through", { reason: said });
      return;
    }
    const { externalAddress: host = "?", externalPort: port } = first;
    const router = [this.#place!.router, this.#mapper!.routerName].filter((text) => text !== "").join(" ");
    log.info("the router lets peers in", {
      at: addressText({ host, port }),
      by: this.#mapper!.kind,
      router,
      ...(this.#place!.isGuessed && { guessed: true }),
    });
    if (isBehindAnother(first))
      log.warn("the router is behind another one, which it cannot open: peers may not get through");
  }

  /** Waits until something is to be done: a renewal, another try, or another network. */
  async #pause(): Promise<void> {
    const { runtime, mayUse } = this.#parts;
    const { clock, surroundings } = runtime;
    const until = clock.now() + this.#pauseMs();
    this.#wake = new AbortController();
    const { signal } = this.#wake;
    if (this.#stop.signal.aborted) return;
    while (!signal.aborted && clock.now() < until) {
      await pauseUntil(clock, Math.min(until, clock.now() + LOOK_MS) as Instant, signal);
      const place = await findRouter(surroundings, mayUse).catch(() => undefined);
      if (!isSamePlace(place, this.#place)) return;
    }
  }

  #pauseMs(): number {
    if (this.#failures > 0) return Math.min(RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS);
    // Half of a lease, where the router gives less than was asked for (RFC 6886 3.3).
    const lease = Math.min(...this.#mapped.map(({ lifetimeSeconds }) => lifetimeSeconds * 500));
    return Math.max(Math.min(RENEW_MS, lease), RETRY_MS);
  }

  #heardNews(from: string): void {
    const now = this.#parts.runtime.clock.now();
    if (from !== this.#place?.router) return;
    if (this.#newsAt !== undefined && now - this.#newsAt < NEWS_GAP_MS) return;
    this.#newsAt = now;
    this.#wake.abort();
  }

  async #release(): Promise<void> {
    if (!this.#mapper) return;
    const deadline = startDeadline(this.#parts.runtime.clock, GOODBYE_MS);
    try {
      await releasePorts(this.#mapper, this.#mapper.held, deadline.signal);
      this.#parts.log.debug("the router lets no more peers in");
    } finally {
      deadline.end();
    }
  }
}

function stateOf(problem: RouterError | undefined): PortMappingFigures["state"] {
  if (problem === undefined) return "looking";
  return problem.kind === "unneeded" ? "unneeded" : "failed";
}

function isBehindAnother(mapped: MappedPort | undefined): boolean {
  return mapped?.externalAddress !== undefined && addressScope(mapped.externalAddress) !== "global";
}

function isSamePlace(a: RouterPlace | undefined, b: RouterPlace | undefined): boolean {
  return a?.router === b?.router && a?.own.host === b?.own.host;
}
