import type { Log } from "../../../base/log.ts";
import type { Random } from "../../../base/random.ts";
import type { OwnNetwork, Runtime } from "../../../runtime/contract.ts";
import type { MappedProtocol } from "../../../wire/nat-pmp.ts";

/** A port of ours that others shall reach. */
export interface PortWish {
  readonly protocol: MappedProtocol;
  readonly internalPort: number;
}

/** What a router has mapped. */
export interface MappedPort extends PortWish {
  readonly externalPort: number;
  /** The router's address out there; undefined where it does not say. */
  readonly externalAddress: string | undefined;
  /** Infinity: until it is unmapped, or the router forgets it. */
  readonly lifetimeSeconds: number;
  /** How long the router has known all its mappings; undefined where it does not say. */
  readonly epochSeconds: number | undefined;
}

/** One way to have ports mapped, which a router has been found to know. */
export interface PortMapper {
  readonly kind: MapperKind;
  /** For the log: what the router calls itself, or nothing. */
  readonly routerName: string;
  /** Maps a port, or renews what was mapped, at `externalPort` if it can. Rejects with {@link RouterError}. */
  map(wish: PortWish, externalPort: number, signal: AbortSignal): Promise<MappedPort>;
  /** Ends a mapping. Rejects with {@link RouterError}. */
  unmap(mapped: MappedPort, signal: AbortSignal): Promise<void>;
}

export type MapperKind = "PCP" | "NAT-PMP" | "UPnP";

/** Finds out whether the router knows this way. Rejects with {@link RouterError} where it does not. */
export type OpenMapper = (parts: RouterParts, place: RouterPlace, signal: AbortSignal) => Promise<PortMapper>;

/** Where the router is, and where we are. */
export interface RouterPlace {
  readonly router: string;
  /** The system did not say which it is: it is where routers usually are. */
  readonly isGuessed: boolean;
  /** Our address in the router's network. */
  readonly own: OwnNetwork;
}

/** What is needed to talk to a router. */
export interface RouterParts {
  readonly runtime: Pick<Runtime, "net" | "clock" | "http" | "surroundings" | "randomBytes">;
  readonly random: Random;
  readonly log: Log;
}

/** A lease is so long: what we do not renew, as we have crashed, is gone by then. */
export const LEASE_SECONDS = 3600;

/** What came in the way: the router refuses, wants another port, does not answer at all; or none is needed. */
type RouterErrorKind = "refused" | "conflict" | "silent" | "unneeded";

/** Why the router maps nothing. */
export class RouterError extends Error {
  override readonly name = "RouterError";
  readonly kind: RouterErrorKind;

  constructor(message: string, kind: RouterErrorKind = "refused") {
    super(message);
    this.kind = kind;
  }
}
