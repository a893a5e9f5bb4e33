/** Limits and timings of the live swarm, each with its reason. Sizes in bytes, times in milliseconds. */

/** A parent sends a new child pieces from at most this far behind the newest piece (design/live.md). */
export const BACKFILL_MS = 1_000;
/** The share of the upload that subscriptions may use; the rest is reserved for repairs. */
export const SUBSCRIPTION_SHARE = 0.88;
/** Interval of the periodic checks. A shorter one costs CPU, a longer one delays repairs. */
export const TICK_MS = 50;
/** Interval between two WINs to a child. With 24 connected peers, WINs use 0.5 % of 8 Mbit/s. */
export const WIN_INTERVAL_MS = 250;
/** Number of pieces for which a WIN lists each chunk: 4 s in pieces of 125 ms. */
export const WIN_PIECES = 32;
/** A path with more hops is treated as a loop. */
export const MAX_DEPTH = 32;
/** A viewer opens connections until it has this number: enough parents for 16 stripes, and spares. */
export const WANTED_PEERS = 24;
/** While a viewer has fewer connections than this, it also connects to the candidates listed in refusals. */
export const MAX_REFERRED_PEERS = 40;
/** Maximum number of connections of a viewer, plus one for each upload slot. If six in ten peers are unreachable, each
 * reachable peer accepts two and a half times as many connections as it opens. */
export const MAX_LIVE_PEERS = 80;
/** Maximum number of connections of the source or a relay. */
export const MAX_SOURCE_PEERS = 128;
/** Maximum number of connections being opened at the same time. */
export const MAX_LIVE_HALF_OPEN = 40;
export const MAX_LIVE_CANDIDATES = 200;
/** Maximum number of connections to one /24 (IPv4) or /64 (IPv6), so that one network cannot provide all parents. */
export const MAX_PEERS_PER_NETWORK = 4;
/** The same limit for loopback and private networks, because all peers may be in one household or test setup; and for
 * one address in them. */
export const MAX_PEERS_PER_LOCAL_NETWORK = 64;
export const MAX_PEERS_PER_LOCAL_ADDRESS = 40;
/** A peer that has been connected for this time and is of no use gives way to a newcomer if connections are short. */
export const IDLE_PEER_MS = 2_000;
/** A failed address is not dialed again for this time. */
export const CANDIDATE_RETRY_MS = 30_000;
/** Minimum interval between two forwarded STATs (live protocol: STAT). */
export const STAT_INTERVAL_MS = 1_000;
/** Interval between two requests for more addresses. */
export const FIND_INTERVAL_MS = 10_000;
/** A viewer chooses the head this long after the first HELLO, or when `HELLO_GATHER_PEERS` HELLOs have arrived. */
export const HELLO_GATHER_MS = 100;
export const HELLO_GATHER_PEERS = 6;
/** A head that is older than the newest one by more than this is a replay, or comes from a peer that has fallen behind. */
export const STALE_HEAD_MS = 30_000;
/** For this time after a fork, a peer that sends a chunk of the other version gets a strike instead of a ban. */
export const FORK_TOLERANCE_MS = 60_000;
/** A viewer that has received no verified chunk for this time returns to a version of the stream that still moves: it
 * followed headers without data. */
export const NO_DATA_MS = 5_000;
/** After such a return, the head advances by at most this time at once. */
export const MAX_LEAP_MS = 10_000;
/** Maximum number of versions of one piece that are remembered. */
export const MAX_VERSIONS = 4;
/** A new viewer starts at the newest random access piece that is at least this far behind the head. */
export const START_BEHIND_MS = 600;
/** If a viewer has played nothing this long after its start, it starts again at the current head. */
export const RESTART_MS = 1_500;
/** A parent must answer a SUB within one round trip, the duration of one piece, and this time. */
export const SUB_ANSWER_MS = 300;
/** A new parent must send its first chunk within one round trip, the duration of one piece, and this time. */
export const FIRST_CHUNK_MS = 200;
/** A viewer leaves a parent that sends no chunk for the duration of one piece plus this time. */
export const STRIPE_TIMEOUT_MS = 350;
/** If no header arrives for this time, the source has paused and no parent is at fault: even a source without input
 * makes a piece each second. */
export const SOURCE_PAUSE_MS = 1_500;
/** A peer that failed as a parent is not asked again for this time. */
export const AVOID_MS = 20_000;
/** A peer that failed to answer a pull is not asked again for this time. */
export const PULL_AVOID_MS = 10_000;
/** A chunk is pulled if it is later than usual for its stripe by this, or by `ORPHAN_LATE_MS` without a parent. */
export const LATE_MS = 300;
export const ORPHAN_LATE_MS = 60;
/** The same tolerance if the parent lacks the chunk too: the parent pulls and forwards it. */
export const STARVING_LATE_MS = 750;
/** The same tolerance for a doubtful parent: an unproven one that has replaced a proven one, or follows a failed one. */
export const DOUBTFUL_LATE_MS = 150;
/** The delay of our own line is limited to this share of the lag: chunks that are later are pulled in any case. */
export const MAX_LINE_DELAY_SHARE = 0.7;
/** A pull times out after this, or after half of the time that remains until playback if that is shorter. */
export const PULL_TIMEOUT_MS = 450;
/** Maximum number of pending pulls to one peer, and to all peers together: 2 s of an 8 Mbit/s stream. */
export const MAX_PULLS_PER_PEER = 16;
export const MAX_PULLS = 256;
/** Maximum number of chunks that one REQ requests. */
export const MAX_NAMED_CHUNKS = 64;
/** Maximum number of headers sent in answer to one HREQ. */
export const MAX_HEADERS_ANSWERED = 32;
/** Maximum number of pieces that one HREQ looks at: a relay keeps hours, and few pieces have a random access point. */
export const MAX_HEADERS_SEARCHED = 1_024;
/** Headers that one peer may request: in a burst, and per second after it. A request of 22 bytes costs up to 14 KB, so
 * without a limit a stranger could use up the upload that is meant for repairs. */
export const HEADER_BURST = 256;
export const HEADERS_PER_SECOND = 32;
/** Chunks that one peer may request: in a burst, and per second after it. Four times the chunks of a stream, and a start. */
export const REQUEST_BURST = 1_024;
export const REQUESTS_PER_SECOND = 512;
/** After a NAK because of too little upload, a peer is not asked again for this time, which doubles with each further NAK
 * up to the maximum. */
export const NAK_AVOID_MS = 150;
export const MAX_NAK_AVOID_MS = 2_400;
/** If no peer can send a chunk, its holders are asked again after this time, which doubles up to the maximum. */
export const PULL_RETRY_MS = 50;
export const MAX_PULL_RETRY_MS = 400;
/** Share of the repair upload, in seconds of it, that only proven viewers may use. */
export const PROVEN_RESERVE_SECONDS = 0.25;
/** A child counts as proven after this time: a stranger would have to take its stripes for as long. */
export const PROVEN_CHILD_MS = 5_000;
/** Maximum size of all chunks that wait for their headers: 64 chunks of 16 KiB. */
export const MAX_QUARANTINE_BYTES = 1024 * 1024;
/** After a chunk has waited this long for its header, the header is requested. */
export const HEADER_WAIT_MS = 60;
/** Number of stripes that carry a copy of each header: three copies of 444 bytes are 1 % of 8 Mbit/s. */
export const HEADER_COPIES = 3;
/** A chunk may belong to a piece at most this number of pieces after the newest signed piece. */
export const MAX_AHEAD_PIECES = 16;
/** Maximum number of headers of one peer that are verified: in a burst, and per second after it. */
export const VERIFY_BURST = 64;
export const VERIFY_PER_SECOND = 32;
/** Maximum number of copies of a header or chunk that one peer may send: one pushed and one requested. */
export const MAX_COPIES = 2;
/** A peer that exceeds this number of useless messages (unknown pieces, replays) is disconnected; one a second is forgiven. */
export const MAX_STRIKES = 200;
/** Strikes for a chunk that has long been played and was not requested: no honest peer sends one, so eight are enough for a ban. */
export const REPLAY_STRIKES = 25;
/** The first ban of an address for useless messages; each further one is twice as long, up to `MAX_BAN_MS`. */
export const BAN_MS = 30_000;
/** A ban for proof of a fault, and the longest one: another household may have the address the next day. */
export const MAX_BAN_MS = 600_000;
/** A parent that sent a chunk on time within this time delivers. */
export const DELIVERING_MS = 5_000;
/** The share of the stream that one peer receives in the long run, pushed and requested chunks together, and what it may have more than
 * that: a start, or the repair of an interruption. */
export const STREAM_SHARE = 1.25;
export const STREAM_BURST_MS = 8_000;
/** If live data for a child waits longer than this, the parent drops the stripes that their connection does not carry. */
export const MAX_CHILD_BACKLOG_MS = 200;
/** A connection that takes less than this share of the stripes that it is given does not carry them all. */
export const CARRIED_SHARE = 0.9;
/** For each such time since its last backlog, the child may have one stripe more. */
export const CARRY_MS = 3_000;
/** A peer that does not confirm by a WIN what it receives gets this much of the stream, and then this share of it: a second each
 * minute, with which it can recover. WINs come four times a second. */
export const UNCONFIRMED_MS = 4_000;
export const UNCONFIRMED_SHARE = 1 / 64;
/** The same for all peers of one network that have left without a confirmation. With the share, one more newcomer of the network
 * can start every half minute. */
export const UNCONFIRMED_NETWORK_MS = 32_000;
export const UNCONFIRMED_NETWORK_SHARE = 1 / 8;
/** A displaced child is served for this time while it looks for another parent. */
export const DISPLACED_MS = 3_000;
/** This share of the slots is reserved for children without upload capacity, even if other peers rank higher. */
export const LEAF_SHARE = 0.2;
/** Maximum number of children of the source per stripe: normally, and if viewers lack the stripe. */
export const SOURCE_CHILDREN = 2;
export const MAX_SOURCE_CHILDREN = 8;
export const SOURCE_REVIEW_MS = 500;
/** If no viewer lacks a stripe for this time, the source lowers the limit of that stripe by one. */
export const CALM_MS = 2_000;
/** If no peer receives a stripe through a child of the source after this time, the source treats the child as a
 * leaf for `UNPRODUCTIVE_MS`. */
export const CHILD_PROOF_MS = 8_000;
/** After reports show that a peer forwards a stripe, the source assumes for this time that it still does. */
export const PROOF_MS = 30_000;
export const UNPRODUCTIVE_MS = 30_000;
/** Interval at which a peer searches for a better position in its home stripe, and the maximum after failed searches. */
export const CLIMB_MS = 1_500;
export const MAX_CLIMB_MS = 12_000;
/** The same for a stripe whose parent has another home stripe: the peer searches for a parent with that home stripe. */
export const HOME_PARENT_MS = 1_000;
export const MAX_HOME_PARENT_MS = 6_000;
/** A parent counts as proven when it has sent this number of useful chunks. */
export const PROOF_CHUNKS = 16;
/** A peer with this number of broken promises is no longer proven, and its stripes get another parent. A promise is broken
 * if a chunk that it claimed to have did not arrive in time; ten chunks in time make up for one. */
export const MAX_BROKEN_PROMISES = 3;
/** An unproven peer replaces a parent that delivers after this number of consecutive chunks. */
export const PROBATION_CHUNKS = 4;
/** A peer is trusted with pulls when it has answered this number of them, or is proven. */
export const PROOF_ANSWERS = 12;
/** Maximum number of pending pulls to one peer that is not trusted, if a trusted one has the chunk too. */
export const MAX_UNTRUSTED_PULLS = 2;
export const PING_MS = 5_000;
/** A parent or child counts as silent if no message arrives for this time; it normally sends four a second. */
export const ACTIVE_PEER_SILENT_MS = 1_000;
/** The same limit for other peers, which send two messages a second. */
export const IDLE_PEER_SILENT_MS = 2_000;
/** A connection is closed if no message arrives for this time. */
export const PEER_TIMEOUT_MS = 4_000;
/** The same for a peer that has not sent a WIN yet. */
export const FIRST_WIN_TIMEOUT_MS = 15_000;
