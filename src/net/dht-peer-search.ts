import { infohashBytes } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Announcement, TaskReport } from "../protocol/dht/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PeerFinder, PeerSearch } from "./contract.ts";
import type { DhtDriver } from "./dht-driver.ts";

/** Pauses between lookups of a swarm; the last one repeats. Nodes drop announced peers after half an hour. */
const ROUNDS_MS = [60_000, 5 * 60_000, 15 * 60_000];
/** With fewer peers than this, lookups are more frequent. */
const FEW_PEERS = 5;
const FEW_PEERS_MS = [60_000, 120_000];
/** Without peers, a player is waiting for the first one. */
const NO_PEERS_MS = [3_000, 10_000, 30_000, 60_000];

export interface DhtPeerSearchDependencies {
  readonly driver: Pick<DhtDriver, "begin">;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the announcement to store in the DHT; undefined while no peer can connect to this machine. */
  readonly announcement: () => Announcement | undefined;
}

/** Searches the DHT for peers of swarms and announces this machine there, in rounds. */
export class DhtPeerSearch implements PeerFinder {
  readonly #dependencies: DhtPeerSearchDependencies;

  constructor(dependencies: DhtPeerSearchDependencies) {
    this.#dependencies = dependencies;
  }

  join(search: PeerSearch): () => void {
    const { clock } = this.#dependencies;
    let isOver = false;
    let cancelLookup = () => {};
    let cancelTimer = () => {};
    const round = (number: number) => {
      if (isOver) return;
      cancelLookup = this.#lookUp(search, (found) => {
        if (isOver) return;
        cancelTimer = clock.at(after(clock.now(), pauseMs(number, Math.max(search.peers(), found))), () =>
          round(number + 1),
        );
      });
    };
    round(0);
    return () => {
      isOver = true;
      cancelLookup();
      cancelTimer();
    };
  }

  /** Runs one lookup; `done` receives 1 if any peer was found, else 0. */
  #lookUp({ infohash, announces, found }: PeerSearch, done: (found: number) => void): () => void {
    const { driver, log, announcement, clock } = this.#dependencies;
    const announce = announces ? announcement() : undefined;
    const beganAt = clock.now();
    let count = 0;
    let firstMs: number | undefined;
    return driver.begin(
      { kind: "peers", infohash: infohashBytes(infohash), announce },
      {
        peers(addresses) {
          firstMs ??= Math.round(clock.now() - beganAt);
          count += addresses.length;
          found(addresses, "dht");
        },
        done({ queries, answers, stored }: TaskReport) {
          const ms = Math.round(clock.now() - beganAt);
          log.debug("DHT lookup finished", { infohash, peers: count, firstMs, queries, answers, stored, ms });
          done(count > 0 ? 1 : 0);
        },
      },
    );
  }
}

/** Returns the pause after lookup `round` (from 0) of a swarm with `peers` peers. */
function pauseMs(round: number, peers: number): number {
  const spans = peers === 0 ? NO_PEERS_MS : peers < FEW_PEERS ? FEW_PEERS_MS : ROUNDS_MS;
  return spans[Math.min(round, spans.length - 1)]!;
}
