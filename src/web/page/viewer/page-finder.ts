/** Pages that are connected, from which on the list of the room is read less often. */
const ENOUGH_PAGES = 8;
const FIND_MS = 2_000;
const RARE_FIND_MS = 15_000;

interface PageFinder {
  /** The URL of the swarm at the engine. */
  readonly url: string;
  /** Our id among other pages. */
  readonly id: string;
  /** The number of connected pages. */
  readonly pages: () => number;
  /** Receives ids of other pages, which are not checked. */
  found(ids: readonly string[]): void;
}

/** Asks the engine for other pages of the swarm, again and again, until the returned function is called. */
export function findPages({ url, id, pages, found }: PageFinder): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isStopped = false;
  const look = async () => {
    try {
      const response = await fetch(`${url}/peerjs/peers?id=${id}`, { cache: "no-store" });
      const ids: unknown = response.ok ? await response.json() : [];
      if (Array.isArray(ids) && !isStopped) found(ids.filter((each) => typeof each === "string"));
    } catch {
      // The engine is not reachable now; the pages that are known remain.
    }
    if (!isStopped) timer = setTimeout(() => void look(), pages() < ENOUGH_PAGES ? FIND_MS : RARE_FIND_MS);
  };
  void look();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
