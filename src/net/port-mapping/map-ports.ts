import { type Random, randomBelow } from "../../base/random.ts";
import { type MappedPort, type PortMapper, type PortRequest, RouterError } from "./contract.ts";

/** Maximum number of external ports that are tried if the port is taken. */
const MAX_TRIES = 5;
/** The other external ports are chosen from this range: above common server ports, below ephemeral ports. */
const [FIRST_PORT, LAST_PORT] = [10_000, 32_000];

/**
 * Maps all requests, or none. The mappings get the same external port if possible, because peers try TCP and uTP at one port.
 * `preferred` is the previous external port; 0 requests the internal port. Rejects with `RouterError`.
 */
export async function mapPorts(
  mapper: PortMapper,
  requests: readonly PortRequest[],
  preferred: number,
  random: Random,
  signal: AbortSignal,
): Promise<MappedPort[]> {
  let wanted = preferred || requests[0]!.internalPort;
  for (let tries = 1; ; tries++) {
    const mapped: MappedPort[] = [];
    let failure: unknown;
    try {
      for (const request of requests)
        mapped.push(await mapper.map(request, mapped[0]?.externalPort ?? wanted, signal));
      if (isOnePort(mapped) || tries >= MAX_TRIES) return mapped;
    } catch (thrown) {
      failure = thrown;
    }
    await releasePorts(mapper, mapped, signal);
    const isFinal = !(failure instanceof RouterError && failure.kind === "conflict") || tries >= MAX_TRIES;
    if (failure !== undefined && isFinal) throw failure;
    wanted = FIRST_PORT + randomBelow(random, LAST_PORT - FIRST_PORT);
  }
}

/** Renews the mappings. If the router has lost a mapping, it may assign another port. Rejects with `RouterError`. */
export async function renewPorts(
  mapper: PortMapper,
  mapped: readonly MappedPort[],
  signal: AbortSignal,
): Promise<MappedPort[]> {
  const renewed: MappedPort[] = [];
  for (const port of mapped) {
    const { protocol, internalPort, externalPort } = port;
    renewed.push(await mapper.map({ protocol, internalPort }, externalPort, signal));
  }
  return renewed;
}

/** Deletes the mappings. If a mapping cannot be deleted, it expires with its lease. */
export async function releasePorts(
  mapper: PortMapper,
  mapped: readonly MappedPort[],
  signal: AbortSignal,
): Promise<void> {
  for (const port of mapped) {
    await mapper.unmap(port, signal).catch((thrown: unknown) => {
      if (!(thrown instanceof RouterError) && !signal.aborted) throw thrown;
    });
  }
}

function isOnePort(mapped: readonly MappedPort[]): boolean {
  return mapped.every(({ externalPort }) => externalPort === mapped[0]!.externalPort);
}

/** Wraps a mapper and records its mappings, including those whose response was not received, so that all can be deleted. */
export class TrackingMapper implements PortMapper {
  readonly #mapper: PortMapper;
  readonly #mappings = new Map<string, MappedPort>();

  constructor(mapper: PortMapper) {
    this.#mapper = mapper;
  }

  get kind(): PortMapper["kind"] {
    return this.#mapper.kind;
  }

  get routerName(): string {
    return this.#mapper.routerName;
  }

  /** All mappings that may exist in the router. */
  get mappings(): readonly MappedPort[] {
    return [...this.#mappings.values()];
  }

  async map(request: PortRequest, externalPort: number, signal: AbortSignal): Promise<MappedPort> {
    const requested = { ...request, externalPort, ...UNANSWERED };
    const isNew = !this.#mappings.has(keyOf(requested));
    if (isNew) this.#mappings.set(keyOf(requested), requested);
    try {
      const mapped = await this.#mapper.map(request, externalPort, signal);
      if (isNew) this.#mappings.delete(keyOf(requested));
      this.#mappings.set(keyOf(mapped), mapped);
      return mapped;
    } catch (thrown) {
      if (isNew && thrown instanceof RouterError) this.#mappings.delete(keyOf(requested));
      throw thrown;
    }
  }

  async unmap(mapped: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#mapper.unmap(mapped, signal);
    this.#mappings.delete(keyOf(mapped));
  }
}

/** The properties of a mapping that are unknown before the router responds. */
const UNANSWERED = { externalAddress: undefined, lifetimeSeconds: 0, epochSeconds: undefined } as const;

function keyOf({ protocol, externalPort }: MappedPort): string {
  return `${protocol} ${externalPort}`;
}
