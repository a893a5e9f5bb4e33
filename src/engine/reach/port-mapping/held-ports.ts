import type { MappedPort, PortMapper, PortWish } from "./contract.ts";

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
    const mapped = await this.#mapper.map(wish, externalPort, signal);
    this.#held.set(keyOf(mapped), mapped);
    return mapped;
  }

  async unmap(mapped: MappedPort, signal: AbortSignal): Promise<void> {
    await this.#mapper.unmap(mapped, signal);
    this.#held.delete(keyOf(mapped));
  }
}

function keyOf({ protocol, externalPort }: MappedPort): string {
  return `${protocol} ${externalPort}`;
}
