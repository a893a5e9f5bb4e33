/** Every limit of the DHT node, with its reason. Sizes in bytes, times in milliseconds. */

/** Nodes in an answer, and to which announcements go (BEP 5: K). */
export const NEAREST = 8;
/** Of these, nodes whose ids do not fit their addresses (BEP 42). */
export const UNFIT_TOLD = 2;
/** Nodes kept of those that share no, one, two … leading bits with us: the far ones are where most lookups begin, and
 * knowing more of them saves a hop (libtorrent does the same). */
export const BUCKET_NODES: readonly number[] = [128, 64, 32, 16];
/** Nodes kept of all nearer ones (BEP 5). */
export const NEAR_BUCKET_NODES = 8;
/** Nodes of one bucket in one network of 256 addresses (IPv6: /48): whoever owns the network does not own the bucket. */
export const MAX_NODES_PER_NETWORK = 2;
/** Failures in a row after which a node is given up. */
export const MAX_FAILURES = 4;
/** Where nothing at all has been heard for so long, it is we who are offline: silence is nobody's failure. */
export const OFFLINE_MS = 30_000;

/** Questions of one lookup that wait for answers at a time (BEP 5: alpha is 3; first peers matter more to a player). */
export const LOOKUP_ALPHA = 5;
/** Questions of one lookup in all: a network of ten million nodes takes about 30. */
export const MAX_LOOKUP_QUERIES = 60;
/** Of these, to nodes whose ids do not fit their addresses (BEP 42): whoever chooses ids freely can come as near to a target
 * as he likes, and would otherwise be asked to the end. */
export const MAX_UNFIT_QUERIES = 20;
/** Nodes without a fitting id that count among the nearest. */
export const UNFIT_NEAREST = 4;
/** Nodes that a lookup knows at a time, of each kind. */
export const MAX_LOOKUP_NODES = 100;
/** A lookup ends by then, whatever it waits for. */
export const LOOKUP_MS = 15_000;
/** Peers that one lookup hands out: a swarm keeps 3,000 candidates. */
export const MAX_FOUND_PEERS = 1_000;
/** Lookups at a time, of both families; further ones wait. Each may have 5 questions under way. */
export const MAX_LOOKUPS = 32;
/** Lookups that wait or run. Beyond that a task fails at once; an engine has at most some hundred swarms. */
export const MAX_TASKS = 1_000;

/** Questions that wait for an answer. Lookups, their ends and upkeep together stay below. */
export const MAX_OPEN_QUERIES = 1_000;
/** How long an answer takes until more is known, and the bounds of what is expected. */
export const FIRST_ANSWER_MS = 500;
export const MIN_ANSWER_MS = 80;
export const MAX_ANSWER_MS = 1_500;
/** After so many times that long, the answer does not come any more. At least a second: routers find each other first. */
export const LOST_FACTOR = 3;
export const MIN_LOST_MS = 1_000;
/** Questions we ask a second, and in a burst: some 10 KB/s. */
export const QUERIES_PER_SECOND = 100;
export const QUERY_BURST = 300;

/** Bytes of answers a second, and in a burst. A flood of questions costs no more of the line than that. */
export const ANSWER_BYTES_PER_SECOND = 64 * 1024;
export const ANSWER_BURST_BYTES = 256 * 1024;
/** Bytes out for a byte in, towards an address that has not shown that it hears us. */
export const UNPROVEN_FACTOR = 3;
/** The largest answer to those who have: it passes every link without being cut. */
export const MAX_ANSWER_BYTES = 1_400;
/** Datagrams a second that are looked at though nothing was asked of their sender: others are dropped unread. */
export const STRANGERS_PER_SECOND = 1_000;
/** Datagrams of one sender that are looked at in a span, and senders that are counted. */
export const SENDER_SPAN_MS = 10_000;
export const MAX_DATAGRAMS_PER_SENDER = 150;
export const MAX_SENDERS = 4_096;
/** Addresses that have shown that they hear us, and how long that holds. */
export const MAX_PROVEN = 4_096;
export const PROVEN_MS = 15 * 60_000;

/** A token holds for one to two spans (BEP 5: ten minutes). */
export const TOKEN_SPAN_MS = 5 * 60_000;

/** Peers are forgotten after 30 minutes (BEP 5 leaves it open; clients announce every 15). */
export const PEER_MS = 30 * 60_000;
/** Swarms, peers of one, and peers in all that are kept for others: a few MB. */
export const MAX_SWARMS = 2_000;
export const MAX_SWARM_PEERS = 500;
export const MAX_STORED_PEERS = 20_000;
/** Ports of one address in one swarm: several may be behind one router. */
export const MAX_PORTS_PER_PEER = 4;
/** Peers in an answer: they fit into 1,400 bytes beside the nodes. */
export const MAX_ANSWER_PEERS = 100;
/** Infohashes in a sample (BEP 51), and how long it stays. */
export const SAMPLE_COUNT = 20;
export const SAMPLE_MS = 10 * 60_000;

/** Items are forgotten after two hours (BEP 44). */
export const ITEM_MS = 2 * 60 * 60_000;
/** Items that are kept for others: 1.4 MB at most. */
export const MAX_ITEMS = 1_000;
/** Items of one address among them. */
export const MAX_ITEMS_PER_ADDRESS = 50;

/** How often the table is looked after. */
export const UPKEEP_MS = 5_000;
/** A bucket is looked up anew when nothing was looked up near it for so long (BEP 5: 15 minutes). */
export const REFRESH_MS = 15 * 60_000;
/** A node that has said nothing for so long is asked whether it is there (BEP 5: 15 minutes). */
export const QUESTIONABLE_MS = 15 * 60_000;
/** Addresses that wait to be asked who they are. */
export const MAX_NEWCOMERS = 200;
/** Newcomers that are asked in a round of upkeep. */
export const NEWCOMERS_PER_ROUND = 4;
/** A table with fewer nodes than this is not whole: the way to us is looked up again soon. */
export const FEW_NODES = 16;
export const FEW_NODES_LOOKUP_MS = 30_000;
/** Questions without any answer after which a whole family is left alone, and for how long: many machines have addresses of
 * IPv6 that lead nowhere. */
export const CUT_OFF_QUERIES = 30;
export const CUT_OFF_MS = 10 * 60_000;
/** Addresses of ours, as others see them, that are remembered: a machine has a few in each family. */
export const MAX_SEEN_AT = 16;
/** Networks that must agree on what our address is, and the last votes that count. */
export const ADDRESS_VOTES = 4;
export const MAX_ADDRESS_VOTES = 16;
