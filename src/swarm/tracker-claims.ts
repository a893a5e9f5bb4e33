import { after, type Instant } from "../base/time.ts";
import type { AnnounceReply, SwarmCounts } from "../wire/tracker.ts";
import type { TrackerFigures } from "./contract.ts";

/** How often one tracker is asked for counts that its announces do not carry: as often as announces usually are. */
const SCRAPE_INTERVAL_MS = 1_800_000;

interface Claim {
  counts: SwarmCounts | undefined;
  /** Why the last announce failed; undefined: it did not. */
  problem: string | undefined;
  hasAnswered: boolean;
  scrapeAt: Instant | undefined;
}

/** What the trackers of one content say of its swarm. Claims, no more: they are shown, nothing is decided by them. */
export class TrackerClaims {
  /** By URL; as many as trackers are announced to. */
  readonly #claims = new Map<string, Claim>();

  /** Takes an announce's reply; true where its tracker is to be asked for the counts by a scrape (BEP 48). */
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

  /** Takes what a scrape brought. */
  scraped(url: string, counts: SwarmCounts): void {
    const claim = this.#claims.get(url);
    if (claim) claim.counts = counts;
  }

  /** The largest claims: each tracker knows a part of the swarm, and the parts overlap. `known`: trackers in all. */
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
