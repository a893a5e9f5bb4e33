import type { BroadcastLists } from "../engine/live/broadcast-lists.ts";

/** The lists of what is broadcast, for the library, which is opened before the engine that broadcasts. */
export class LateLists implements BroadcastLists {
  readonly #lists: Promise<BroadcastLists>;
  #bind: (lists: BroadcastLists) => void = () => {};
  #bound: BroadcastLists | undefined;

  constructor() {
    this.#lists = new Promise((resolve) => {
      this.#bind = resolve;
    });
  }

  /** From now on there is somebody who does it. */
  bind(lists: BroadcastLists): void {
    this.#bound = lists;
    this.#bind(lists);
  }

  async refresh(...[list, progress]: Parameters<BroadcastLists["refresh"]>): Promise<string> {
    const { signal } = progress;
    const given = new Promise<never>((_, reject) => {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
    });
    const lists = await Promise.race([this.#lists, given]);
    return lists.refresh(list, progress);
  }

  /** Before there is somebody, nothing of any list is on air. */
  async forget(id: number): Promise<void> {
    await this.#bound?.forget(id);
  }
}
