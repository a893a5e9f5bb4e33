import type { LiveRules } from "./contract.ts";

/** Every limit of the live swarm, with its reason. Sizes in bytes, times in milliseconds. */

/** The rules as they are; which of them runs have justified so far is in design/live.md. */
export const LIVE_RULES: LiveRules = {
  backfillMs: 1_000,
  yieldsLate: true,
  pulls: true,
  headroom: 0.88,
  watchesFirstChunk: true,
};
/** How often time alone is looked at. Shorter costs CPU, longer delays repairs. */
export const TICK_MS = 50;
/** Neighbours are told what we hold so often: 0.5 % of 8 Mbit/s with 24 of them. */
export const WIN_INTERVAL_MS = 250;
/** Pieces that a WIN tells chunk by chunk: 4 s of 125 ms. */
export const WIN_PIECES = 32;
/** Hops beyond which a path is taken for a loop. */
export const MAX_DEPTH = 32;
/** Connections that are sought; up to which more are opened, to those who were named; that are kept; and that a source keeps:
 * enough parents for 16 stripes and spares. Where six in ten cannot be called, the others have to take two and a half times as
 * many as they seek. */
export const WANTED_PEERS = 24;
export const MANY_PEERS = 40;
export const MAX_LIVE_PEERS = 80;
export const MAX_SOURCE_PEERS = 128;
/** Connections being opened at once. */
export const MAX_LIVE_HALF_OPEN = 40;
export const MAX_LIVE_CANDIDATES = 200;
/** Connections of one /24 (IPv4) or /64: nobody who holds one network holds all our parents. */
export const MAX_PEERS_PER_NETWORK = 4;
/** The same of loopback and of a private network, which is a household or a lab. */
export const MAX_PEERS_NEARBY = 64;
/** An address that failed rests so long. */
export const CANDIDATE_REST_MS = 30_000;
/** Between two STATs that are passed on (live protocol: STAT). */
export const STAT_INTERVAL_MS = 1_000;
/** Between two calls for more addresses. */
export const FIND_INTERVAL_MS = 10_000;
/** Helloes are collected so long before the head is chosen. */
export const HELLO_GATHER_MS = 100;
export const HELLO_GATHER_PEERS = 6;
/** A head so much older than the best one is a replay or a laggard. */
export const STALE_HEAD_MS = 30_000;
/** So long after a fork was seen, chunks of the other version cost a strike and not the connection. */
export const FORKED_MS = 60_000;
/** A newcomer starts at the newest random access piece at least so far behind the head. */
export const START_BEHIND_MS = 600;
/** Nothing played by then: start again at the new head. */
export const REHOOK_MS = 1_500;
/** A SUB is answered within a round trip and this. */
export const SUB_ANSWER_MS = 300;
/** The first chunk comes within a round trip, a piece and this; later silence is borne a little longer. */
export const FIRST_CHUNK_MS = 200;
export const SILENCE_MS = 350;
/** No header for so long is a pause of the source, for which no parent can be blamed: even a silent one tells each second. */
export const PAUSE_MS = 1_500;
/** Who failed as a parent is not asked again so long. */
export const AVOID_MS = 20_000;
/** Who failed to answer a pull. */
export const PULL_AVOID_MS = 10_000;
/** A chunk so much later than its stripe usually is gets pulled; at once-ish where the stripe has no parent. */
export const LATE_MS = 300;
export const ORPHAN_LATE_MS = 60;
/** As long as the parent lacks it, too: that one pulls it and hands it on. */
export const STARVING_LATE_MS = 750;
/** A pull is given so long, or half of what remains. */
export const PULL_TIMEOUT_MS = 450;
/** Pulls waiting with one peer, and in all: 2 s of an 8 Mbit/s stream. */
export const MAX_PULLS_PER_PEER = 16;
export const MAX_PULLS = 256;
/** Chunks named in one REQ, CANCEL or NAK. */
export const MAX_NAMED_CHUNKS = 64;
/** Headers answered to one HREQ. */
export const MAX_HEADERS_ANSWERED = 32;
/** Chunks that wait for their header: 64 of 16 KiB. */
export const MAX_QUARANTINE_BYTES = 1024 * 1024;
/** A chunk that waits for its header so long makes us ask for it. */
export const HEADER_WAIT_MS = 60;
/** Each header travels on so many stripes: 3 of 442 bytes are 1 % at 8 Mbit/s. */
export const HEADER_COPIES = 3;
/** Pieces beyond the newest signed one that chunks may name. */
export const MAX_AHEAD_PIECES = 16;
/** Headers a peer may have verified: a burst, and each second. */
export const VERIFY_BURST = 64;
export const VERIFY_PER_SECOND = 32;
/** One peer may tell the same header, and send the same chunk, so often: pushed, and asked for. */
export const MAX_TOLD = 2;
/** Messages of no use (unknown pieces, replays) that are borne before the peer is cut off; one is forgiven a second. */
export const MAX_STRIKES = 200;
/** Addresses named in SUBNO, NAK and BYE. */
export const MAX_NAMED_CANDIDATES = 8;
/** A live byte that waits longer costs its child the stripe. */
export const MAX_CHILD_BACKLOG_MS = 200;
/** A displaced child is served so long while it moves. */
export const DISPLACED_MS = 3_000;
/** The part of the slots that is kept from the ranking, for those who cannot upload. */
export const OPEN_SHARE = 0.2;
/** Children of the source by stripe: at first, and while starvation shows. */
export const SOURCE_CHILDREN = 2;
export const MAX_SOURCE_CHILDREN = 8;
export const SOURCE_REVIEW_MS = 500;
/** A stripe of which nobody lacks anything for so long loses one place. */
export const CALM_MS = 2_000;
/** A child of the source has so long to show that others get the stripe through it; else it counts as a leaf for a while. */
export const PROVING_MS = 8_000;
/** Who was seen to feed others counts as one who does so long. */
export const PROOF_MS = 30_000;
export const BARREN_MS = 30_000;
/** How often a better place for the home stripe is sought: at first, and after it was sought in vain for long. */
export const CLIMB_MS = 1_500;
export const MAX_CLIMB_MS = 12_000;
/** How often a stripe that only a helper gives is sought from one whose home it is: at first, and after that was in vain. */
export const TIDY_MS = 1_000;
export const MAX_TIDY_MS = 6_000;
/** A parent that gave so many chunks has proved itself. */
export const PROOF_CHUNKS = 16;
export const PING_MS = 5_000;
/** Who tells what it has four times a second is not there when it is silent so long; others have longer. */
export const QUIET_MS = 1_000;
/** Who is told more seldom, and tells us so. */
export const SELDOM_QUIET_MS = 2_000;
export const GONE_MS = 4_000;
export const SILENT_MS = 15_000;
