import { infohashBytes } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { Announcement, TaskReport } from "../../swarm/dht/contract.ts";
import type { PeerFinder, PeerWish } from "./contract.ts";
import type { DhtDriver } from "./dht-driver.ts";

/** When a swarm is looked up again after the first time; the last span goes on. Nodes forget peers after half an hour. */
const ROUNDS_MS = [60_000, 5 * 60_000, 15 * 60_000];
/** With fewer peers than this it is looked up sooner, … */
const FEW_PEERS = 5;
const FEW_PEERS_MS = [60_000, 120_000];
/** … and with none as soon as others may have come meanwhile: somebody waits for the first one. */
const NO_PEERS_MS = [3_000, 10_000, 30_000, 60_000];

/** What joining takes. */
export interface DhtJoinsParts {
  readonly driver: Pick<DhtDriver, "begin">;
  readonly clock: Clock;
  readonly log: Log;
  /** What others are told of us; undefined while nobody can call us. */
  readonly announcement: () => Announcement | undefined;
}

/** Looks for the peers of swarms in the DHT and announces us there, in rounds, as long as we are in them. */
export class DhtJoins implements PeerFinder {
  readonly #parts: DhtJoinsParts;

  constructor(parts: DhtJoinsParts) {
    this.#parts = parts;
  }

  join(wish: PeerWish): () => void {
    const { clock } = this.#parts;
    let isOver = false;
    let stopLooking = () => {};
    let stopWaiting = () => {};
    const round = (number: number) => {
      if (isOver) return;
      stopLooking = this.#look(wish, (found) => {
        if (isOver) return;
        stopWaiting = clock.at(after(clock.now(), pauseMs(number, Math.max(wish.peers(), found))), () =>
          round(number + 1),
        );
      });
    };
    round(0);
    return () => {
      isOver = true;
      stopLooking();
      stopWaiting();
    };
  }

  /** One lookup; `done` hears whether anybody was found. */
  #look({ infohash, announces, found }: PeerWish, done: (found: number) => void): () => void {
    const { driver, log, announcement, clock } = this.#parts;
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
          log.debug("looked for peers", {
            infohash,
            peers: count,
            firstMs,
            queries,
            answers,
            told: stored,
            ms,
          });
          done(count > 0 ? 1 : 0);
        },
      },
    );
  }
}

/** How long until a swarm is looked up again: after `round`, with so many peers. */
function pauseMs(round: number, peers: number): number {
  const spans = peers === 0 ? NO_PEERS_MS : peers < FEW_PEERS ? FEW_PEERS_MS : ROUNDS_MS;
  return spans[Math.min(round, spans.length - 1)]!;
}
