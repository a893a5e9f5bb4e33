import { after, type Instant } from "../../base/time.ts";
import type { AnnounceReply, SwarmCounts } from "../../wire/tracker/announce.ts";
import type { TrackerFigures } from "./contract.ts";

/** Scrape interval of a tracker whose announces contain no counts: the usual announce interval. */
const SCRAPE_INTERVAL_MS = 1_800_000;

interface Claim {
  counts: SwarmCounts | undefined;
  /** Why the last announce failed; undefined if it did not. */
  problem: string | undefined;
  hasAnswered: boolean;
  scrapeAt: Instant | undefined;
}

/** Swarm statistics reported by trackers. They are unverified: shown to the user, never used in decisions. */
export class TrackerClaims {
  /** By announce URL. */
  readonly #claims = new Map<string, Claim>();

  /** Takes the reply to an announce; returns true if the tracker should be scraped for counts (BEP 48). */
  replied(url: string, reply: AnnounceReply, now: Instant): boolean {
    const claim = this.#claimOf(url);
    claim.problem = reply.ok ? undefined : reply.reason;
    if (!reply.ok) return false;
    claim.hasAnswered = true;
    if (reply.counts) {
      claim.counts = reply.counts;
      return false;
    }
    if (claim.scrapeAt !== undefined && now < claim.scrapeAt) return false;
    claim.scrapeAt = after(now, SCRAPE_INTERVAL_MS);
    return true;
  }

  /** Takes the counts from a scrape. */
  scraped(url: string, counts: SwarmCounts): void {
    const claim = this.#claims.get(url);
    if (claim) claim.counts = counts;
  }

  /** Returns the largest counts of all trackers: each knows part of the swarm, and the parts overlap. `known`: all trackers. */
  figures(known: number): TrackerFigures {
    const claims = [...this.#claims.values()];
    const counts = claims.flatMap((claim) => claim.counts ?? []);
    return {
      known,
      answered: claims.filter((claim) => claim.hasAnswered).length,
      failing: claims.filter((claim) => claim.problem !== undefined).length,
      problem: claims.findLast((claim) => claim.problem !== undefined)?.problem,
      seeds: largest(counts.map(({ seeders }) => seeders)),
      leechers: largest(counts.map(({ leechers }) => leechers)),
    };
  }

  #claimOf(url: string): Claim {
    let claim = this.#claims.get(url);
    if (!claim) {
      claim = { counts: undefined, problem: undefined, hasAnswered: false, scrapeAt: undefined };
      this.#claims.set(url, claim);
    }
    return claim;
  }
}

function largest(counts: readonly number[]): number | undefined {
  return counts.length === 0 ? undefined : Math.max(...counts);
}
