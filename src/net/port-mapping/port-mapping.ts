import { sleepUntil } from "../../async/sleep.ts";
import { addressScope, addressText } from "../../base/address.ts";
import { BugError } from "../../base/assert.ts";
import { messageOf } from "../../base/errors.ts";
import type { Instant } from "../../base/time.ts";
import { startDeadline } from "../../outbound/deadline.ts";
import type { OwnNetwork, UdpSocket } from "../../runtime/contract.ts";
import type { MappedProtocol } from "../../wire/router/nat-pmp.ts";
import { hasRouterRestarted, type RouterEpoch } from "../../wire/router/nat-pmp.ts";
import {
  type MappedPort,
  type MapperKind,
  type OpenMapper,
  type PortRequest,
  type RouterDependencies,
  RouterError,
  type RouterLocation,
} from "./contract.ts";
import { findRouter } from "./find-router.ts";
import { mapPorts, releasePorts, renewPorts, TrackingMapper } from "./map-ports.ts";
import { openNatPmp } from "./nat-pmp-mapper.ts";
import { openPcp } from "./pcp-mapper.ts";
import { openUpnp } from "./upnp-mapper.ts";

/** Maps the peer ports in the router and keeps them mapped until `close`. */
export interface PortMapping {
  /** Returns the external port; undefined while nothing is mapped. */
  externalPort(protocol: MappedProtocol): number | undefined;
  figures(): PortMappingFigures;
  /** Deletes the mappings; resolves within seconds. */
  close(): Promise<void>;
}

/** State of port mapping. */
export interface PortMappingFigures {
  /** `unneeded`: no router can be asked. */
  readonly state: "looking" | "mapped" | "failed" | "unneeded";
  /** The external address (undefined if the router does not report it) and port. */
  readonly externalAddress: string | undefined;
  readonly externalPort: number | undefined;
  readonly by: MapperKind | undefined;
  readonly router: string | undefined;
  /** True if the system does not report the router, and the usual address is assumed. */
  readonly isGuessed: boolean;
  /** True if the router's external address is not public: another router (often of the provider) is in front of it. */
  readonly isBehindAnother: boolean;
  /** Why nothing is mapped. */
  readonly problem: string | undefined;
}

export interface PortMappingDependencies extends RouterDependencies {
  /** The external port of the first is used for the others. */
  readonly requests: readonly PortRequest[];
  readonly mayUse: (network: OwnNetwork) => boolean;
}

/** Mappings are renewed far more often than their lease requires, which detects a router that has lost them. */
const RENEW_MS = 5 * 60_000;
/** Interval at which a change of the router or of our address is detected. */
const CHECK_MS = 30_000;
/** Retry after the n-th consecutive failure: 30 s · 2^n, at most half an hour; immediately in another network. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 30 * 60_000;
/** Minimum interval of rounds that router announcements trigger. */
const MIN_ANNOUNCEMENT_MS = 10_000;
/** Timeout of deleting the mappings at the end. */
const RELEASE_TIMEOUT_MS = 2_000;
/** In order of preference: PCP announces restarts and needs one datagram; most routers support only UPnP. */
const PROTOCOLS: readonly OpenMapper[] = [openPcp, openNatPmp, openUpnp];

/** Starts port mapping. Mappings are renewed, and repeated after a restart of the router or a change of network. */
export function startPortMapping(dependencies: PortMappingDependencies): PortMapping {
  return new RunningPortMapping(dependencies);
}

class RunningPortMapping implements PortMapping {
  readonly #dependencies: PortMappingDependencies;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #location: RouterLocation | undefined;
  #mapper: TrackingMapper | undefined;
  #mapped: readonly MappedPort[] = [];
  #epoch: RouterEpoch | undefined;
  #problem: RouterError | undefined;
  /** The previous external port; requested again, because peers know it. */
  #preferred = 0;
  #failures = 0;
  /** Aborted to end the pause between two rounds. */
  #wake = new AbortController();
  #announcementAt: Instant | undefined;
  #logged = "";

  constructor(dependencies: PortMappingDependencies) {
    this.#dependencies = dependencies;
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
      router: this.#location?.router,
      isGuessed: this.#location?.isGuessed ?? false,
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
    const listener = await listenToRouter(this.#dependencies, (from) => this.#announcementReceived(from));
    while (!signal.aborted) {
      await this.#round(signal);
      await this.#pause();
    }
    listener?.close();
    await this.#release();
  }

  /** Maps the ports, or renews the mappings. */
  async #round(signal: AbortSignal): Promise<void> {
    try {
      await this.#find();
      const isRenewed = await this.#renew(signal);
      if (!isRenewed) await this.#begin(this.#location!, signal);
      this.#failures = 0;
      this.#problem = undefined;
    } catch (thrown) {
      // The mappings are deleted at the end.
      if (signal.aborted) return;
      if (thrown instanceof BugError) throw thrown;
      this.#mapper = undefined;
      this.#mapped = [];
      this.#failures++;
      this.#problem = thrown instanceof RouterError ? thrown : new RouterError(messageOf(thrown));
    }
    this.#logChange();
  }

  /** Drops the mappings of another router, which is out of reach. */
  async #find(): Promise<void> {
    const { runtime, mayUse } = this.#dependencies;
    const previous = this.#location;
    this.#location = undefined;
    const place = await findRouter(runtime.surroundings, mayUse);
    this.#location = place;
    if (isSameRouter(place, previous)) return;
    this.#mapper = undefined;
    this.#mapped = [];
    this.#epoch = undefined;
  }

  async #begin(location: RouterLocation, signal: AbortSignal): Promise<void> {
    const { log, requests, random } = this.#dependencies;
    const problems: RouterError[] = [];
    for (const open of PROTOCOLS) {
      try {
        const mapper = new TrackingMapper(await open(this.#dependencies, location, signal));
        this.#mapper = mapper;
        this.#accept(await mapPorts(mapper, requests, this.#preferred, random, signal));
        return;
      } catch (thrown) {
        if (signal.aborted || !(thrown instanceof RouterError)) throw thrown;
        problems.push(thrown);
        log.debug("a port mapping protocol failed", { reason: thrown.message });
      }
    }
    // A refusal is more informative than silence.
    throw problems.find(({ kind }) => kind !== "silent") ?? problems.at(-1)!;
  }

  /** Returns false if nothing is mapped or the router refuses; the ports are then mapped again. */
  async #renew(signal: AbortSignal): Promise<boolean> {
    if (!this.#mapper) return false;
    try {
      this.#accept(await renewPorts(this.#mapper, this.#mapped, signal));
      return true;
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof RouterError)) throw thrown;
      this.#dependencies.log.debug("the router does not renew the mappings", {
        reason: thrown.message,
      });
      return false;
    }
  }

  #accept(mapped: readonly MappedPort[]): void {
    const { runtime, log } = this.#dependencies;
    const { epochSeconds } = mapped[0]!;
    const epoch = epochSeconds === undefined ? undefined : { epochSeconds, receivedAt: runtime.clock.now() };
    if (epoch && this.#epoch && hasRouterRestarted(this.#epoch, epoch))
      log.info("the router has restarted; the ports are mapped again");
    this.#mapped = mapped;
    this.#epoch = epoch;
    this.#preferred = mapped[0]!.externalPort;
  }

  /** Logs the state if it has changed. */
  #logChange(): void {
    const { log } = this.#dependencies;
    const [first] = this.#mapped;
    const at = first && `${first.externalAddress ?? "?"} ${first.externalPort}`;
    const state = at ?? this.#problem?.message ?? "";
    if (state === this.#logged) return;
    this.#logged = state;
    if (this.#problem?.kind === "unneeded") {
      log.debug("port mapping is not needed", { reason: state });
      return;
    }
    if (!first) {
      log.info("the router does not map the peer port: peers cannot connect", { reason: state });
      return;
    }
    const { externalAddress: host = "?", externalPort: port } = first;
    const router = [this.#location!.router, this.#mapper!.routerName].filter((text) => text !== "").join(" ");
    log.info("peer port mapped by the router", {
      at: addressText({ host, port }),
      by: this.#mapper!.kind,
      router,
      ...(this.#location!.isGuessed && { guessed: true }),
    });
    if (isBehindAnother(first))
      log.warn(
        "the router is behind another router, which it cannot configure: peers may be unable to connect",
      );
  }

  /** Waits until the next renewal or retry, or until the network changes. */
  async #pause(): Promise<void> {
    const { runtime, mayUse } = this.#dependencies;
    const { clock, surroundings } = runtime;
    const until = clock.now() + this.#pauseMs();
    this.#wake = new AbortController();
    const { signal } = this.#wake;
    if (this.#stop.signal.aborted) return;
    while (!signal.aborted && clock.now() < until) {
      await sleepUntil(clock, Math.min(until, clock.now() + CHECK_MS) as Instant, signal);
      const place = await findRouter(surroundings, mayUse).catch(() => undefined);
      if (!isSameRouter(place, this.#location)) return;
    }
  }

  #pauseMs(): number {
    if (this.#failures > 0) return Math.min(RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS);
    // Half of the lease, in milliseconds; the router may grant less than requested (RFC 6886 section 3.3).
    const lease = Math.min(...this.#mapped.map(({ lifetimeSeconds }) => lifetimeSeconds * 500));
    return Math.max(Math.min(RENEW_MS, lease), RETRY_MS);
  }

  #announcementReceived(from: string): void {
    const now = this.#dependencies.runtime.clock.now();
    if (from !== this.#location?.router) return;
    if (this.#announcementAt !== undefined && now - this.#announcementAt < MIN_ANNOUNCEMENT_MS) return;
    this.#announcementAt = now;
    this.#wake.abort();
  }

  async #release(): Promise<void> {
    if (!this.#mapper) return;
    const deadline = startDeadline(this.#dependencies.runtime.clock, RELEASE_TIMEOUT_MS);
    try {
      await releasePorts(this.#mapper, this.#mapper.mappings, deadline.signal);
      this.#dependencies.log.debug("port mappings deleted");
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

function isSameRouter(a: RouterLocation | undefined, b: RouterLocation | undefined): boolean {
  return a?.router === b?.router && a?.own.host === b?.own.host;
}

/** Multicast group of router announcements (RFC 6886 section 3.2.1, RFC 6887 section 14.1). */
const ANNOUNCEMENTS = { group: "224.0.0.1", port: 5350 } as const;

/** Listens to announcements of routers. Returns undefined if the port is taken; the next renewal then shows any change. */
async function listenToRouter(
  { runtime, log }: Pick<RouterDependencies, "runtime" | "log">,
  received: (from: string) => void,
): Promise<UdpSocket | undefined> {
  const { group, port } = ANNOUNCEMENTS;
  try {
    const receive = (_: Uint8Array, from: { readonly host: string }) => received(from.host);
    return await runtime.net.bindUdp({ host: "0.0.0.0", port }, receive, { multicast: { group } });
  } catch {
    log.debug("another program uses the port of router announcements");
    return undefined;
  }
}
