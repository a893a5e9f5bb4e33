/** A transfer that can give up a connection. */
export interface ConnectionHolder {
  /** Closes one of its connections. Returns false if it has none. */
  closeOne(): boolean;
}

/** Counts the connections of all transfers against one limit. Transfers with a player come before idle ones. */
export class ConnectionCount {
  open = 0;
  readonly limit: number;
  readonly #idle = new Set<ConnectionHolder>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Records whether a transfer is idle, which means that it has no player. */
  setIdle(holder: ConnectionHolder, isIdle: boolean): void {
    if (isIdle) this.#idle.add(holder);
    else this.#idle.delete(holder);
  }

  /**
   * Returns true if `holder` may open or accept a connection. At the limit, a transfer with a player takes the place of a
   * connection of an idle transfer; until that one has closed, one more than the limit is open.
   */
  hasRoomFor(holder: ConnectionHolder): boolean {
    if (this.open < this.limit) return true;
    if (this.#idle.has(holder)) return false;
    for (const other of this.#idle) if (other.closeOne()) return true;
    return false;
  }
}
