import { type MappedPort, type PortMapper, type PortWish, RouterError } from "./contract.ts";

/** A mapper that knows what it has mapped, also where nobody heard the answer to the end: all of it is to be given back. */
export class HoldingMapper implements PortMapper {
  readonly #mapper: PortMapper;
  readonly #held = new Map<string, MappedPort>();

  constructor(mapper: PortMapper) {
    this.#mapper = mapper;
  }

  get kind(): PortMapper["kind"] {
    return this.#mapper.kind;
  }

  get routerName(): string {
    return this.#mapper.routerName;
  }

  /** What is mapped and not unmapped. */
  get held(): readonly MappedPort[] {
    return [...this.#held.values()];
  }

  async map(wish: PortWish, externalPort: number, signal: AbortSignal): Promise<MappedPort> {
    const asked = { ...wish, externalPort, ...UNANSWERED };
    const isNew = !this.#held.has(keyOf(asked));
    if (isNew) this.#held.set(keyOf(asked), asked);
    try {
      const mapped = await this.#mapper.map(wish, externalPort, signal);
      if (isNew) this.#held.delete(keyOf(asked));
      this.#held.set(keyOf(mapped), mapped);
      return mapped;
    } catch (thrown) {
      if (isNew && thrown instanceof RouterError) this.#held.delete(keyOf(asked));
      throw thrown;
    }
  }

  async unmap(mapped: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#mapper.unmap(mapped, signal);
    this.#held.delete(keyOf(mapped));
  }
}

/** What is not known of a mapping before the router has answered. */
const UNANSWERED = { externalAddress: undefined, lifetimeSeconds: 0, epochSeconds: undefined } as const;

function keyOf({ protocol, externalPort }: MappedPort): string {
  return `${protocol} ${externalPort}`;
}
