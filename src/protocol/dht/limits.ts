/** Limits of the DHT node, with their reasons. Sizes in bytes, times in milliseconds. */

/** Nodes in a response, and nodes that an announcement is sent to (BEP 5: K). */
export const NEAREST = 8;
/** How many of the nodes in a response may have an id that does not match their address (BEP 42). */
export const INVALID_ID_RETURNED = 2;
/** Capacity of the buckets of nodes that share 0, 1, 2 … leading bits with the own id: most lookups start at distant nodes, and
 * larger buckets save a hop (libtorrent does the same). */
export const BUCKET_NODES: readonly number[] = [128, 64, 32, 16];
/** Capacity of all nearer buckets (BEP 5). */
export const NEAR_BUCKET_NODES = 8;
/** Nodes of one bucket in one /24 network (IPv6: /48), so that the owner of a network cannot fill a bucket. */
export const MAX_NODES_PER_NETWORK = 2;
/** Consecutive failures after which a node is removed. */
export const MAX_FAILURES = 4;
/** If no datagram arrives for this time, this machine is offline, and unanswered queries do not count as failures. */
export const OFFLINE_MS = 30_000;

/** Parallel queries of one lookup (BEP 5: alpha is 3; a player needs the first peers sooner). */
export const LOOKUP_ALPHA = 5;
/** Queries of one lookup: a network of ten million nodes takes about 30. */
export const MAX_LOOKUP_QUERIES = 60;
/** Queries of one lookup to nodes whose ids do not match their addresses (BEP 42): an attacker with arbitrary ids could always
 * be nearer to the target, and would otherwise receive all queries. */
export const MAX_INVALID_ID_QUERIES = 20;
/** Nodes without a valid id that count among the nearest. */
export const INVALID_ID_NEAREST = 4;
/** Nodes that a lookup keeps, of each kind. */
export const MAX_LOOKUP_NODES = 100;
/** Timeout of a lookup. */
export const LOOKUP_MS = 15_000;
/** Peers that one lookup returns: a swarm keeps 3,000 candidates. */
export const MAX_FOUND_PEERS = 1_000;
/** Parallel lookups of both families; further ones wait. Each has up to 5 queries in flight. */
export const MAX_LOOKUPS = 32;
/** Running and waiting tasks. Beyond this a task fails at once; an engine has at most a few hundred swarms. */
export const MAX_TASKS = 1_000;

/** Pending queries. Lookups, stores and upkeep together stay below. */
export const MAX_OPEN_QUERIES = 1_000;
/** Expected time of an answer before any was measured, and the limits of the estimate. */
export const FIRST_ANSWER_MS = 500;
export const MIN_ANSWER_MS = 80;
export const MAX_ANSWER_MS = 1_500;
/** An answer is lost after this multiple of the expected time, at least a second: NATs and routers may need time to
 * set up a path. */
export const LOST_FACTOR = 3;
export const MIN_LOST_MS = 1_000;
/** Queries sent per second, and in a burst: about 10 KB/s. */
export const QUERIES_PER_SECOND = 100;
export const QUERY_BURST = 300;

/** Bytes of responses per second, and in a burst: the bandwidth that a flood of queries can use. */
export const ANSWER_BYTES_PER_SECOND = 64 * 1024;
export const ANSWER_BURST_BYTES = 256 * 1024;
/** Bytes sent per byte received, to an unproven address. */
export const UNPROVEN_FACTOR = 3;
/** The largest response to a proven address: it passes every link without fragmentation. */
export const MAX_ANSWER_BYTES = 1_400;
/** Unsolicited datagrams processed per second: further ones are dropped unread. */
export const UNSOLICITED_PER_SECOND = 1_000;
/** Datagrams of one sender processed per period, and the number of senders that are counted. */
export const SENDER_SPAN_MS = 10_000;
export const MAX_DATAGRAMS_PER_SENDER = 150;
export const MAX_SENDERS = 4_096;
/** Remembered proven addresses, and how long they stay proven. */
export const MAX_PROVEN = 4_096;
export const PROVEN_MS = 15 * 60_000;

/** A token is valid for one to two periods (BEP 5: ten minutes). */
export const TOKEN_SPAN_MS = 5 * 60_000;

/** Announced peers expire after 30 minutes (BEP 5 leaves it open; clients announce every 15). */
export const PEER_MS = 30 * 60_000;
/** Swarms, peers of one swarm, and peers in total stored for other nodes: a few MB. */
export const MAX_SWARMS = 2_000;
export const MAX_SWARM_PEERS = 500;
export const MAX_STORED_PEERS = 20_000;
/** Ports of one address in one swarm: several peers may share a NAT. */
export const MAX_PORTS_PER_PEER = 4;
/** Peers in a response: they fit into 1,400 bytes together with the nodes. */
export const MAX_ANSWER_PEERS = 100;
/** Infohashes in a sample (BEP 51), and how long a sample is valid. */
export const SAMPLE_COUNT = 20;
export const SAMPLE_MS = 10 * 60_000;

/** Items expire after two hours (BEP 44). */
export const ITEM_MS = 2 * 60 * 60_000;
/** Items stored for other nodes: at most 1.4 MB. */
export const MAX_ITEMS = 1_000;
/** Items of one address. */
export const MAX_ITEMS_PER_ADDRESS = 50;

/** Interval of upkeep. */
export const UPKEEP_MS = 5_000;
/** A bucket without lookups for this time is refreshed (BEP 5: 15 minutes). */
export const REFRESH_MS = 15 * 60_000;
/** A node that has been silent for this time is pinged (BEP 5: 15 minutes). */
export const QUESTIONABLE_MS = 15 * 60_000;
/** Addresses waiting for their first ping. */
export const MAX_NEW_ADDRESSES = 200;
/** New addresses pinged in one round of upkeep. */
export const NEW_ADDRESSES_PER_ROUND = 4;
/** A table with fewer nodes is incomplete: the neighbourhood of the own id is looked up more often. */
export const FEW_NODES = 16;
export const FEW_NODES_LOOKUP_MS = 30_000;
/** Consecutive unanswered queries after which a family counts as unreachable, and for how long: many machines have
 * IPv6 addresses without a route. */
export const UNREACHABLE_QUERIES = 30;
export const UNREACHABLE_MS = 10 * 60_000;
/** Remembered addresses of this machine as seen by other nodes: a machine has a few in each family. */
export const MAX_SEEN_AT = 16;
/** Networks that must agree on the external address, and the number of latest votes that count. */
export const ADDRESS_VOTES = 4;
export const MAX_ADDRESS_VOTES = 16;
