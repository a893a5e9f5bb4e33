import { type Random, randomBelow } from "../../../base/random.ts";
import { type MappedPort, type PortMapper, type PortWish, RouterError } from "./contract.ts";

/** Other ports that are tried where ours is taken: of ten thousands, few are. */
const MAX_TRIES = 5;
/** Where others are looked for: above what servers use, below what systems give to outgoing connections. */
const [FIRST_PORT, LAST_PORT] = [10_000, 32_000];

/**
 * Maps all wishes, or none. All get one external port where that can be: whoever is told of one tries TCP and uTP there.
 * `preferred` is what they had before; 0: the internal one. Rejects with `RouterError`.
 */
export async function mapPorts(
  mapper: PortMapper,
  wishes: readonly PortWish[],
  preferred: number,
  random: Random,
  signal: AbortSignal,
): Promise<MappedPort[]> {
  let wished = preferred || wishes[0]!.internalPort;
  for (let tries = 1; ; tries++) {
    const mapped: MappedPort[] = [];
    let failure: unknown;
    try {
      for (const wish of wishes)
        mapped.push(await mapper.map(wish, mapped[0]?.externalPort ?? wished, signal));
      if (isOnePort(mapped) || tries >= MAX_TRIES) return mapped;
    } catch (thrown) {
      failure = thrown;
    }
    await releasePorts(mapper, mapped, signal);
    const isFinal = !(failure instanceof RouterError && failure.kind === "conflict") || tries >= MAX_TRIES;
    if (failure !== undefined && isFinal) throw failure;
    wished = FIRST_PORT + randomBelow(random, LAST_PORT - FIRST_PORT);
  }
}

/**
 * Maps again what is mapped. A router that has lost it may give another port. Rejects with `RouterError`.
 */
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

/** Ends mappings as far as the router lets us: what remains ends with its lease. */
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
