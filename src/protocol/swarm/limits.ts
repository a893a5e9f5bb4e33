/** Limits of a swarm, with their reasons. Sizes in bytes, times in milliseconds. */

/** The block size of a request (BEP 3): common seeds refuse larger ones. */
export const BLOCK_BYTES = 16 * 1024;
/** The largest block served or accepted; some old clients request 32 KiB, none more than 128 KiB. */
export const MAX_BLOCK_BYTES = 128 * 1024;
/** Extension messages (metadata, PEX) are far smaller; libtorrent and anacrolix limit them to 1 MiB. */
export const MAX_EXTENSION_BYTES = 1024 * 1024;
/** Metadata size (BEP 9); anacrolix allows 16 MiB, libtorrent 30 MiB. */
export const MAX_METADATA_BYTES = 16 * 1024 * 1024;
/** Queued requests of one peer, announced as `reqq` (BEP 10); libtorrent allows up to 2,000. */
export const MAX_UPLOAD_QUEUE = 500;
/** Requests pending at one peer (8 MiB in flight). */
export const MAX_REQUEST_QUEUE = 512;
/** Requests pending at a peer of unknown speed. */
export const MIN_REQUEST_QUEUE = 4;
/** Time to complete a handshake (libtorrent: 10 s). */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Time to open a connection. */
export const CONNECT_TIMEOUT_MS = 7_000;
/** Interval of keep-alive messages, and the idle time after which a connection is closed (BEP 3: 2 minutes). */
export const KEEP_ALIVE_MS = 90_000;
export const IDLE_TIMEOUT_MS = 150_000;
/** Known candidates of a swarm; beyond this the least promising are dropped. */
export const MAX_CANDIDATES = 3_000;
/** Connections of one swarm. */
export const MAX_PEERS = 80;
/** Connections being opened at once in one swarm: home routers drop bursts of connection attempts. */
export const MAX_HALF_OPEN = 24;
/** Connections of one IP address (several peers may share a NAT); loopback is exempt for local tests. */
export const MAX_PEERS_PER_ADDRESS = 2;
/** Peers in a PEX message, and the interval of PEX messages (BEP 11). */
export const MAX_PEX_PEERS = 50;
export const PEX_INTERVAL_MS = 60_000;
/** Intervals of choke rounds and of the optimistic unchoke (BEP 3: 10 s and 30 s). */
export const CHOKE_INTERVAL_MS = 10_000;
export const OPTIMISTIC_INTERVAL_MS = 30_000;
/** Unrequested blocks that a peer may send before it is disconnected. */
export const MAX_UNREQUESTED_BLOCKS = 64;
/** Bytes of started pieces of a swarm: enough for eight fast peers with full queues. */
export const MAX_PARTIAL_BYTES = 32 * 1024 * 1024;
/** Pieces that may be started regardless of their size: one to finish, others for peers that lack it. */
export const MIN_PARTIAL_PIECES = 3;
