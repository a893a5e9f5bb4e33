import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { OwnNetwork, Runtime } from "../../runtime/contract.ts";
import type { MappedProtocol } from "../../wire/router/nat-pmp.ts";

/** A local port to be mapped. */
export interface PortRequest {
  readonly protocol: MappedProtocol;
  readonly internalPort: number;
}

/** A port that the router has mapped. */
export interface MappedPort extends PortRequest {
  readonly externalPort: number;
  /** The router's external address; undefined if it does not report it. */
  readonly externalAddress: string | undefined;
  /** Infinity: until it is unmapped or the router loses it. */
  readonly lifetimeSeconds: number;
  /** Age of the router's mapping table in seconds (RFC 6886 section 3.6); undefined if it does not report it. */
  readonly epochSeconds: number | undefined;
}

/** A port mapping protocol that the router supports. */
export interface PortMapper {
  readonly kind: MapperKind;
  /** The name that the router reports, for the log; may be empty. */
  readonly routerName: string;
  /** Maps or renews a port, at `externalPort` if possible. Rejects with {@link RouterError}. */
  map(request: PortRequest, externalPort: number, signal: AbortSignal): Promise<MappedPort>;
  /** Deletes a mapping. Rejects with {@link RouterError}. */
  unmap(mapped: MappedPort, signal: AbortSignal): Promise<void>;
}

export type MapperKind = "PCP" | "NAT-PMP" | "UPnP";

/** Checks that the router supports the protocol. Rejects with {@link RouterError} if not. */
export type OpenMapper = (
  dependencies: RouterDependencies,
  location: RouterLocation,
  signal: AbortSignal,
) => Promise<PortMapper>;

/** Addresses of the router and of this machine. */
export interface RouterLocation {
  readonly router: string;
  /** True if the system does not report a gateway, and the usual address is assumed. */
  readonly isGuessed: boolean;
  /** Our address in the router's network. */
  readonly own: OwnNetwork;
}

export interface RouterDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "http" | "surroundings" | "randomBytes">;
  readonly random: Random;
  readonly log: Log;
}

/** Lease of a mapping. After a crash of the engine, the mapping expires after this time. */
export const LEASE_SECONDS = 3600;

/** `conflict`: the port is taken; `silent`: no response; `unneeded`: no router to ask. */
type RouterErrorKind = "refused" | "conflict" | "silent" | "unneeded";

/** The reason why the router maps no port. */
export class RouterError extends Error {
  override readonly name = "RouterError";
  readonly kind: RouterErrorKind;

  constructor(message: string, kind: RouterErrorKind = "refused") {
    super(message);
    this.kind = kind;
  }
}
